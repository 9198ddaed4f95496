import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  counter,
  openBed,
  openReceiver,
  type Receiver,
  type Reply,
  removeFolders,
  status,
  until,
  untilMoving,
  valuesOf,
  written,
} from '../hosted.ts';
import { partialSuccess } from '../hosted-wire.ts';

let receiver: Receiver;
beforeEach(async () => {
  receiver = await openReceiver();
});
afterEach(async () => {
  await receiver.close();
  removeFolders();
});

/** Answers so many times with the first, then as a receiver that works. */
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

describe('answers after which a batch is tried again', () => {
  test.each<[string, Reply, string]>([
    ['500', status(500), 'server_error'],
    ['503', status(503), 'server_error'],
    ['429', status(429), 'throttled'],
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
    await until(() => bed.failures[reason] === 1, 'the first try has failed');
    bed.clock.advance(250);
    await until(() => bed.failures[reason] === 2, 'the second try has failed');
    bed.clock.advance(499);
    expect(receiver.received).toHaveLength(2);
    bed.clock.advance(1);
    await until(() => bed.delivered() === 1, 'the third try goes through');
    expect(valuesOf(receiver.taken())).toEqual([1]);
    expect(bed.drops).toEqual({});
    expect(bed.logged).toEqual(['a batch did not go through', 'batches go through again']);
    await bed.stop();
  });

  test('nobody answers within the timeout', async () => {
    firstly(1, () => {});
    const bed = await openBed(receiver.url, { reportingIntervalMs: 100_000 });
    await bed.tick(100_000);
    await until(() => receiver.received.length === 1, 'the request is there');
    bed.clock.advance(10_000);
    await until(() => bed.failures.too_slow === 1, 'it is given up');
    bed.clock.advance(250);
    await until(() => bed.delivered() === 1, 'the next try goes through');
    await bed.stop();
  });

  test('nobody listens', async () => {
    const { port } = new URL(receiver.url);
    await receiver.close();
    const bed = await openBed(receiver.url);
    await bed.tick();
    await until(() => bed.failures.refused === 1, 'the connection is refused');
    receiver = await openReceiver(Number(port));
    bed.clock.advance(250);
    await until(() => bed.delivered() === 1, 'the next try goes through');
    await bed.stop();
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
    await until(() => bed.failures.server_error === 1, 'the first try has failed');
    if (waitMs > 0) {
      bed.clock.advance(waitMs - 1);
      expect(receiver.received).toHaveLength(1);
    }
    bed.clock.advance(1);
    await until(() => bed.delivered() >= 1, 'the next try goes through');
    await bed.stop();
  });
});

describe('answers after which a batch is dropped and counted', () => {
  test.each([400, 401, 404, 409, 422])('%i', async (code) => {
    const bed = await openBed(receiver.url);
    await bed.tick();
    await until(() => bed.delivered() === 1, 'the receiver has taken 2.0');
    firstly(1, status(code, {}, 'out of order'));
    bed.show([counter(2)]);
    await bed.tick();
    bed.show([counter(3)]);
    await bed.tick();
    await until(() => bed.delivered() === 2, 'the batch behind it goes through at once');
    expect(valuesOf(receiver.taken())).toEqual([1, 3]);
    expect(bed.drops).toEqual({ 'hosted/rejected': 1 });
    expect(bed.failures).toEqual({ rejected: 1 });
    await bed.stop();
  });

  test('OTLP: 500 is for good, a partial success is counted and not sent again', async () => {
    const bed = await openBed(receiver.url, { protocol: 'otlp' });
    receiver.reply(status(500));
    await bed.tick();
    await until(() => bed.drops['hosted/rejected'] === 1, 'it is dropped');
    receiver.reply(status(200, {}, partialSuccess(1)));
    await bed.tick();
    await until(() => bed.delivered() === 1, 'it is taken');
    expect(bed.drops).toEqual({ 'hosted/rejected': 1, 'hosted/partial_success': 1 });
    expect(receiver.received).toHaveLength(2);
    await bed.stop();
  });
});

describe('413', () => {
  test.each(['remotewrite', 'otlp'] as const)(
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
      await until(() => bed.delivered() === 4, 'all pieces have gone through');
      expect(taken).toEqual([250, 250, 250, 250]);
      expect(bed.failures).toEqual({ too_large: 3 });
      await bed.tick();
      await until(() => bed.delivered() === 8, 'the next picture goes through');
      expect(bed.failures).toEqual({ too_large: 3 });
      expect(bed.drops).toEqual({});
      await bed.stop();
    },
  );

  test('one sample that is too large is dropped', async () => {
    const bed = await openBed(receiver.url);
    receiver.reply(status(413));
    await bed.tick();
    await until(() => bed.drops['hosted/rejected'] === 1, 'it is dropped');
    await until(() => bed.queued().bytes === 0, 'the queue is empty');
    await bed.stop();
  });

  test('a failure within the pieces sends only those again that are left', async () => {
    const bed = await openBed(receiver.url);
    let requests = 0;
    receiver.reply((received, response) => {
      requests += 1;
      if (requests === 1) return status(413)(received, response);
      (requests === 3 ? status(503) : written)(received, response);
    });
    bed.show(many(10));
    await bed.tick();
    await until(() => bed.failures.server_error === 1, 'the second piece has failed');
    bed.clock.advance(250);
    await until(() => bed.delivered() === 2, 'both pieces have gone through');
    expect(valuesOf(receiver.taken())).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    await bed.stop();
  });
});

describe('a receiver of remote write 1.0', () => {
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
    await until(() => bed.delivered() === 1, 'the batch goes through');
    bed.show([counter(2)]);
    await bed.tick();
    await until(() => bed.delivered() === 2, 'so does the next');
    const versions = receiver.received.map(({ headers }) => headers['x-prometheus-remote-write-version']);
    expect(versions).toEqual(['2.0.0', '0.1.0', '0.1.0']);
    expect(valuesOf(receiver.received.slice(1))).toEqual([1, 2]);
    expect(bed.drops).toEqual({});
    await bed.stop();
  });
});

test('a batch at which the receiver fails each time does not block those behind it', async () => {
  const bed = await openBed(receiver.url);
  receiver.reply((received, response) => {
    const isPoison = received.samples().some(({ value }) => value === 666);
    (isPoison ? status(500) : written)(received, response);
  });
  bed.show([counter(666)]);
  await bed.tick();
  bed.show([counter(2)]);
  await untilMoving(bed.clock, 1000, () => bed.drops['hosted/rejected'] === 1, 'it is given up');
  await until(() => bed.delivered() >= 2, 'those behind it go through');
  expect(new Set(valuesOf(receiver.taken()))).toEqual(new Set([2]));
  await bed.stop();
});

test('while the receiver fails at everything, no batch is given up', async () => {
  const bed = await openBed(receiver.url);
  receiver.reply(status(500));
  for (let value = 1; value <= 5; value++) {
    bed.show([counter(value)]);
    await bed.tick();
  }
  await untilMoving(bed.clock, 500, () => (bed.failures.server_error ?? 0) >= 14, 'many tries have failed');
  receiver.reply(written);
  await untilMoving(bed.clock, 500, () => bed.queued().bytes === 0, 'the backlog is gone');
  expect(valuesOf(receiver.taken()).slice(0, 5)).toEqual([1, 2, 3, 4, 5]);
  expect(bed.drops).toEqual({});
  await bed.stop();
});
