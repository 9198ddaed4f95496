import { describe, expect, onTestFinished, test } from 'vitest';
import {
  counter,
  openBed,
  openReceiver,
  type Reply,
  receiverForEachTest,
  status,
  untilMoving,
  valuesOf,
  written,
} from '../hosted.ts';
import { metricsOf, partialSuccess, pointsOf } from '../hosted-wire.ts';
import { bySize, onlyShort, testOnce } from '../size.ts';
import { until } from '../until.ts';

const receiver = receiverForEachTest();

/** The names of the metrics in requests. */
const namesIn = (received: ReturnType<typeof receiver.taken>): string[] =>
  received.flatMap((one) =>
    one.headers['content-encoding'] === 'gzip'
      ? metricsOf(one.resources()).map(({ name }) => name)
      : one.samples().map(({ labels }) => labels.__name__!),
  );

/** Answers the first requests with `first`, then like a receiver that works. */
const firstly = (times: number, first: Reply, then: Reply = written): void => {
  let count = 0;
  receiver.reply((received, response) => (count++ < times ? first : then)(received, response));
};
const many = (n: number) => [
  {
    name: 'svc_requests',
    kind: 'counter' as const,
    series: Array.from({ length: n }, (_, i) => ({ labels: { i: String(i) }, numbers: [i + 1] })),
  },
];

onlyShort(describe)('answers after which a batch is tried again', () => {
  test.each<[string, Reply, string]>([
    ['500', status(500), 'server_error'],
    ['503', status(503), 'server_error'],
    ['429', status(429), 'throttled'],
    ['401: the token has expired', status(401), 'credentials'],
    ['403', status(403), 'credentials'],
    ['404: a gateway lacks its route', status(404), 'rejected'],
    ['408', status(408), 'rejected'],
    ['425', status(425), 'rejected'],
    ['a redirect', status(307, { location: '/elsewhere' }), 'redirect'],
    [
      'a connection cut within the answer',
      (_, response) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('x');
        setImmediate(() => response.destroy());
      },
      'reset',
    ],
    ['a connection cut before the answer', (_, response) => void response.destroy(), 'reset'],
  ])('%s', async (_, reply, reason) => {
    firstly(2, reply);
    const bed = await openBed(receiver.url);
    await bed.tick();
    await until('the first try has failed', () => bed.failures[reason] === 1);
    bed.clock.advance(250);
    await until('the second try has failed', () => bed.failures[reason] === 2);
    bed.clock.advance(499);
    expect(receiver.received).toHaveLength(2);
    bed.clock.advance(1);
    await until('the third try goes through', () => bed.delivered() === 1);
    expect(valuesOf(receiver.taken())).toEqual([1]);
    expect(bed.drops).toEqual({});
    expect(bed.logged).toEqual(['batch not delivered', 'batches are delivered again']);
  });

  test.each([
    ['remotewrite', ' <!DOCTYPE html>\n<html>log in'],
    ['otlp', ' <!DOCTYPE html>\n<html>log in'],
    ['remotewrite', '<!-- portal -->\n<html>log in'],
    ['otlp', '<?xml version="1.0"?><html>log in'],
    ['otlp', '\ufeff<HEAD><title>log in'],
  ] as const)('%s: a web page with status 200, of a proxy: %j', async (protocol, page) => {
    firstly(1, status(200, {}, page));
    const bed = await openBed(receiver.url, { protocol, reportingIntervalMs: 100_000 });
    await bed.tick(100_000);
    await until('the try has failed', () => bed.failures.rejected === 1);
    const said = page.replace(/\s+/g, ' ').trim();
    expect([bed.delivered(), ...bed.told]).toEqual([0, `status 200: ${said}`]);
    bed.clock.advance(250);
    await until('the next try goes through', () => bed.delivered() === 1);
  });

  test('nobody answers within the timeout', async () => {
    firstly(1, () => {});
    const bed = await openBed(receiver.url, { reportingIntervalMs: 100_000 });
    await bed.tick(100_000);
    await until('the request is there', () => receiver.received.length === 1);
    bed.clock.advance(10_000);
    await until('it is given up', () => bed.failures.too_slow === 1);
    bed.clock.advance(250);
    await until('the next try goes through', () => bed.delivered() === 1);
  });

  test('nobody listens', async () => {
    const { port } = new URL(receiver.url);
    await receiver.close();
    const bed = await openBed(receiver.url);
    await bed.tick();
    await until('the connection is refused', () => bed.failures.refused === 1);
    const again = await openReceiver(Number(port));
    onTestFinished(again.close);
    bed.clock.advance(250);
    await until('the next try goes through', () => bed.delivered() === 1);
  });

  test.each<[string, string, number]>([
    ['seconds', '30', 30_000],
    ['a date', 'Thu, 01 Jan 2026 00:00:41 GMT', 40_000],
    ['a date in the past', 'Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['a day', '86400', 600_000],
  ])('Retry-After: %s', async (_, header, waitMs) => {
    firstly(1, status(503, { 'retry-after': header }));
    const bed = await openBed(receiver.url, { reportingIntervalMs: 1000 }, { random: () => 0 });
    await bed.tick();
    await until('the first try has failed', () => bed.failures.server_error === 1);
    if (waitMs > 0) {
      bed.clock.advance(waitMs - 1);
      expect(receiver.received).toHaveLength(1);
    }
    bed.clock.advance(1);
    await until('the next try goes through', () => bed.delivered() >= 1);
  });
});

onlyShort(describe)('answers after which a batch is dropped and counted', () => {
  test.each([400, 405, 409, 422])('%i', async (code) => {
    const bed = await openBed(receiver.url);
    await bed.tick();
    await until('the receiver has taken 2.0', () => bed.delivered() === 1);
    firstly(1, status(code, {}, 'out of order'));
    bed.show([counter(2)]);
    await bed.tick();
    bed.show([counter(3)]);
    await bed.tick();
    await until('the batch behind it goes through at once', () => bed.delivered() === 2);
    expect(valuesOf(receiver.taken())).toEqual([1, 3]);
    expect(bed.drops).toEqual({ 'hosted/rejected': 1 });
    expect(bed.failures).toEqual({ rejected: 1 });
  });

  test('OTLP: 400 is for good, a partial success is counted and not sent again', async () => {
    const bed = await openBed(receiver.url, { protocol: 'otlp' });
    receiver.reply(status(400));
    await bed.tick();
    await until('it is dropped', () => bed.drops['hosted/rejected'] === 1);
    const answer = partialSuccess(1, '.'.repeat(56));
    // A partial success of this length is no web page.
    expect(answer.subarray(0, 2).toString()).toBe('\n<');
    receiver.reply(status(200, {}, answer));
    await bed.tick();
    await until('it is taken', () => bed.delivered() === 1);
    expect(bed.drops).toEqual({ 'hosted/rejected': 1, 'hosted/partial_success': 1 });
    expect(receiver.received).toHaveLength(2);
  });
});

testOnce.each<[string, Reply]>([
  ...[401, 403, 404, 408, 500].map((code): [string, Reply] => [String(code), status(code)]),
  ['a login page', status(200, { 'content-type': 'text/html' }, '<html>login</html>')],
])('after an hour of %s everything that was queued arrives', async (_, refusal) => {
  const bed = await openBed(receiver.url, { protocol: 'otlp', reportingIntervalMs: 600_000 });
  receiver.reply(refusal);
  const values = [1, 2, 3, 4, 5, 6];
  for (const value of values) {
    bed.show(['a', 'b', 'c'].map((name) => ({ ...counter(value), name })));
    await bed.tick(600_000);
  }
  await untilMoving(bed.clock, 60_000, () => receiver.received.length > 10, 'it fails again and again');
  receiver.reply(written);
  const arrived = (name: string) =>
    receiver
      .taken()
      .flatMap((one) => metricsOf(one.resources()).filter((metric) => metric.name === name))
      .flatMap(pointsOf)
      .map(({ asDouble }) => asDouble);
  const names = ['a', 'b', 'c'];
  const isOver = () => names.every((name) => arrived(name).at(-1) === values.at(-1));
  await untilMoving(bed.clock, 60_000, isOver, 'everything arrives');
  expect(bed.drops).toEqual({});
  // At least once: while the clock is moved on, a request that was accepted may time out.
  for (const name of names)
    expect(arrived(name).filter((value, i, all) => value !== all[i - 1])).toEqual(values);
});

describe('413', () => {
  testOnce.each(['remotewrite', 'otlp'] as const)(
    '%s: the batch goes in pieces, later ones are made smaller',
    async (protocol) => {
      const bed = await openBed(receiver.url, { protocol });
      const size = (received: { body: Buffer; samples(): object[]; resources(): object[] }) =>
        protocol === 'otlp'
          ? JSON.stringify(received.resources()).split('asDouble').length - 1
          : received.samples().length;
      const taken: number[] = [];
      receiver.reply((received, response) => {
        if (size(received) > 300) return status(413)(received, response);
        taken.push(size(received));
        (protocol === 'otlp' ? status(200) : written)(received, response);
      });
      bed.show(many(1000));
      await bed.tick();
      await untilMoving(bed.clock, 10, () => bed.delivered() === 4, 'all pieces are delivered');
      expect(taken).toEqual([250, 250, 250, 250]);
      // The refused size is remembered: the second half is not tried as a whole.
      expect(bed.failures).toEqual({ too_large: 2 });
      await bed.tick();
      await until('the next report is delivered', () => bed.delivered() === 8);
      expect(bed.failures).toEqual({ too_large: 2 });
      expect(bed.drops).toEqual({});
    },
  );

  testOnce('one sample that is too large is dropped', async () => {
    const bed = await openBed(receiver.url, { reportingIntervalMs: 600_000 });
    receiver.reply(status(413));
    await bed.tick(600_000);
    await until('it is dropped', () => bed.drops['hosted/rejected'] === 1);
    await untilMoving(bed.clock, 100, () => bed.queued().bytes === 0, 'the queue is empty');
  });

  const protocols: readonly ('remotewrite' | 'otlp')[] = ['remotewrite', 'otlp'];
  test.each(bySize({ short: protocols.slice(1), long: protocols, nightly: protocols }))(
    '%s: a receiver that refuses everything is asked a few times a minute, and what it refused is dropped',
    async (protocol) => {
      const bed = await openBed(receiver.url, { protocol, reportingIntervalMs: 60_000 });
      receiver.reply(status(413));
      bed.show(many(5000));
      await bed.tick(60_000);
      const startMs = bed.clock.nowMs();
      await untilMoving(bed.clock, 50, () => (bed.drops['hosted/rejected'] ?? 0) > 0, 'the floor is reached');
      // 5,000 points are halved ten times.
      expect(receiver.received.length).toBeLessThanOrEqual(11);
      const havePassed = () => bed.clock.nowMs() - startMs > 300_000;
      await untilMoving(bed.clock, 500, havePassed, 'five minutes have passed');
      expect(receiver.received.length).toBeLessThanOrEqual(11 + (12 * 300) / 30);
    },
  );

  testOnce(
    'one sample that is too large costs nothing but itself, and no smaller requests for all others',
    async () => {
      const bed = await openBed(receiver.url, { reportingIntervalMs: 600_000 });
      bed.show(many(1000));
      await bed.tick(600_000);
      await until('the receiver has accepted 1,000 points', () => bed.delivered() === 1);
      receiver.reply((received, response) => {
        const isTooLarge = received.samples().some(({ value }) => value === 700);
        (isTooLarge ? status(413) : written)(received, response);
      });
      await bed.tick(600_000);
      await untilMoving(bed.clock, 50, () => bed.queued().bytes === 0, 'the queue is empty');
      expect(bed.drops).toEqual({ 'hosted/rejected': 1 });
      const requests = receiver.received.length;
      receiver.reply(written);
      await bed.tick(600_000);
      await until('the queue is empty', () => bed.queued().bytes === 0);
      expect(receiver.received.length).toBe(requests + 1);
    },
  );

  testOnce('a failure within the pieces sends only those again that are left', async () => {
    const bed = await openBed(receiver.url);
    let requests = 0;
    receiver.reply((received, response) => {
      requests += 1;
      if (requests === 1) return status(413)(received, response);
      (requests === 3 ? status(503) : written)(received, response);
    });
    bed.show(many(10));
    await bed.tick();
    await untilMoving(bed.clock, 10, () => bed.failures.server_error === 1, 'the second piece has failed');
    await untilMoving(bed.clock, 10, () => bed.delivered() === 2, 'both pieces are delivered');
    expect(valuesOf(receiver.taken())).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });
});

onlyShort(describe)('a receiver of remote write 1.0', () => {
  test.each<[string, Reply]>([
    ['answers 415', status(415)],
    ['answers 400', status(400)],
    ['takes the message and finds nothing in it', status(204)],
  ])('%s', async (_, toNew) => {
    receiver.reply((received, response) =>
      (received.headers['x-prometheus-remote-write-version'] === '0.1.0' ? status(204) : toNew)(
        received,
        response,
      ),
    );
    const bed = await openBed(receiver.url);
    await bed.tick();
    await until('the batch goes through', () => bed.delivered() === 1);
    bed.show([counter(2)]);
    await bed.tick();
    await until('so does the next', () => bed.delivered() === 2);
    const versions = receiver.received.map(({ headers }) => headers['x-prometheus-remote-write-version']);
    expect(versions).toEqual(['2.0.0', '0.1.0', '0.1.0']);
    expect(valuesOf(receiver.received.slice(1))).toEqual([1, 2]);
    expect(bed.drops).toEqual({});
  });
});

/** One counter for each name, with these values. */
const named = (values: Record<string, number>) =>
  Object.entries(values).map(([name, value]) => ({ ...counter(value), name }));
const valuesByName = (): Record<string, unknown[]> => {
  const byName: Record<string, unknown[]> = {};
  for (const { labels, value } of receiver.taken().flatMap((one) => one.samples())) {
    const name = labels.__name__!;
    byName[name] = [...(byName[name] ?? []), value];
  }
  return byName;
};

/** The receiver fails at each request with this point. */
const failAtPoison = () =>
  receiver.reply((received, response) => {
    const isPoison = received.samples().some(({ value }) => value === 666);
    (isPoison ? status(500) : written)(received, response);
  });

testOnce(
  'a point at which the receiver fails each time does not block others, in its batch and behind it',
  async () => {
    const bed = await openBed(receiver.url);
    failAtPoison();
    bed.show(named({ a: 1, b: 2, c: 666, d: 4 }));
    await bed.tick();
    bed.show(named({ a: 2, b: 3, c: 4, d: 5 }));
    await untilMoving(bed.clock, 1000, () => bed.drops['hosted/rejected'] === 1, 'the point is dropped');
    await until('the backlog is gone', () => bed.queued().bytes === 0);
    const { a, b, c, d } = valuesByName();
    expect([a!.slice(0, 2), b!.slice(0, 2), c![0], d!.slice(0, 2)]).toEqual([[1, 2], [2, 3], 4, [4, 5]]);
    expect(bed.drops).toEqual({ 'hosted/rejected': 1 });
  },
);

testOnce.each(['remotewrite', 'otlp'] as const)(
  '%s: of a batch that is refused because of one series, the others arrive, and the reporter does not fail',
  async (protocol) => {
    const bed = await openBed(receiver.url, { protocol });
    receiver.reply((received, response) =>
      (namesIn([received]).includes('bad_series')
        ? status(400, {}, 'label value too long: bad_series')
        : written)(received, response),
    );
    const names = ['a', 'b', 'bad_series', 'd', 'e'];
    for (const value of [1, 2, 3]) {
      bed.show(names.map((name) => ({ ...counter(value), name })));
      await bed.tick();
      await until('it is over', () => bed.drops['hosted/rejected'] === value && bed.queued().bytes === 0);
    }
    for (const name of names.filter((one) => one !== 'bad_series')) {
      const values = namesIn(receiver.taken()).filter((one) => one === name);
      expect(values).toHaveLength(3);
    }
    expect(bed.failures).toEqual({});
    expect(bed.logged).toEqual(['the receiver refuses some points of a batch']);
  },
);

testOnce(
  'a receiver that refuses everything gets some twenty requests for a batch, and then one',
  async () => {
    const bed = await openBed(receiver.url, { protocol: 'otlp' });
    receiver.reply(status(400));
    bed.show(many(1_000));
    await bed.tick();
    await until('the batch is dropped', () => bed.drops['hosted/rejected'] === 1_000);
    const first = receiver.received.length;
    expect(first).toBeLessThan(40);
    expect(bed.failures.rejected).toBe(1);
    bed.show(many(1_000));
    await bed.tick();
    await until('the next one is dropped', () => bed.drops['hosted/rejected'] === 2_000);
    expect(receiver.received.length - first).toBe(1);
    receiver.reply(written);
    await bed.tick();
    await until('the next one is accepted', () => bed.delivered() === 1);
  },
);

testOnce(
  'a batch of one point at which the receiver fails each time does not block those behind it',
  async () => {
    const bed = await openBed(receiver.url);
    failAtPoison();
    bed.show([counter(666)]);
    await bed.tick();
    bed.show([counter(2)]);
    await untilMoving(bed.clock, 1000, () => bed.drops['hosted/rejected'] === 1, 'it is dropped');
    await until('those behind it are delivered', () => bed.delivered() >= 2);
    expect(new Set(valuesOf(receiver.taken()))).toEqual(new Set([2]));
  },
);

describe('a receiver that fails at more than 50 points and accepts fewer', () => {
  const hang: Reply = () => {};
  const failures: readonly [string, 'remotewrite' | 'otlp', Reply, string][] = [
    ['remote write, 504', 'remotewrite', status(504), 'server_error'],
    ['OTLP, a time-out', 'otlp', hang, 'too_slow'],
    ['remote write, 500', 'remotewrite', status(500), 'server_error'],
    ['remote write, a time-out', 'remotewrite', hang, 'too_slow'],
    ['OTLP, 503', 'otlp', status(503), 'server_error'],
  ];
  test.each(bySize({ short: failures.slice(0, 2), long: failures, nightly: failures }))(
    '%s: every point arrives',
    async (_, protocol, fail, reason) => {
      const bed = await openBed(receiver.url, { protocol, timeoutMs: 500, reportingIntervalMs: 3_600_000 });
      const pointsOf = (received: { samples(): object[]; resources(): object[] }) =>
        protocol === 'otlp'
          ? JSON.stringify(received.resources()).split('asDouble').length - 1
          : received.samples().length;
      receiver.reply((received, response) => (pointsOf(received) > 50 ? fail : written)(received, response));
      bed.show(many(1000));
      await bed.tick(3_600_000);
      await untilMoving(bed.clock, 100, () => bed.queued().bytes === 0, 'the queue is empty');
      const arrived = receiver.taken().reduce((sum, one) => sum + pointsOf(one), 0);
      expect(arrived).toBe(1000);
      expect(bed.drops).toEqual({});
      // There are five failures of the whole batch, then one for each size that is too large.
      expect(bed.failures[reason]).toBeLessThan(15);
    },
  );
});

testOnce('while the receiver fails at everything, no batch is dropped', async () => {
  const bed = await openBed(receiver.url);
  receiver.reply(status(500));
  for (let value = 1; value <= 5; value++) {
    bed.show(named({ a: value, b: value }));
    await bed.tick();
  }
  await untilMoving(bed.clock, 500, () => (bed.failures.server_error ?? 0) >= 14, 'many tries have failed');
  receiver.reply(written);
  await untilMoving(bed.clock, 500, () => bed.queued().bytes === 0, 'the backlog is gone');
  const { a, b } = valuesByName();
  expect([a!.slice(0, 5), b!.slice(0, 5)]).toEqual([
    [1, 2, 3, 4, 5],
    [1, 2, 3, 4, 5],
  ]);
  expect(bed.drops).toEqual({});
});
