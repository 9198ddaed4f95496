import { describe, expect, test } from 'vitest';
import { type Aggregator, aggregator, count, gauge, silentPort, startPush } from '../push.ts';
import { aggregate } from '../push-lines.ts';
import { until } from '../until.ts';

const sumOf = (target: Aggregator) => aggregate(target.lines(), 'none').get('["a"]') ?? 0;

test('nobody listens: ECONNREFUSED is counted, the process stays up, sends resume', async () => {
  const port = await silentPort();
  const rig = await startPush({ hostPort: `127.0.0.1:${port}`, tagFormat: 'none' });
  let total = 0;
  while (!rig.failures.includes('refused')) {
    expect(total).toBeLessThan(500);
    rig.show([count('a', ++total)]);
    await rig.flush();
  }
  await until('the lost line is counted', () => rig.dropped.has('send_failed'));
  expect(rig.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
  const target = await aggregator(port);
  const lost = () => rig.dropped.get('send_failed')!;
  for (let more = 0; more < 3; more++) {
    rig.show([count('a', ++total)]);
    await rig.flush();
  }
  await until('what was counted since arrives', () => sumOf(target) >= 3);
  expect(sumOf(target)).toBeLessThanOrEqual(total - lost());
  expect(rig.logged.at(-1)).toEqual({ level: 'info', msg: 'push works again' });
});

test('EMSGSIZE: the line that is too large stays owed, its neighbours leave', async () => {
  const target = await aggregator();
  const rig = await startPush({
    hostPort: `127.0.0.1:${target.port}`,
    tagFormat: 'dogstatsd',
    flushBytes: 70_000,
  });
  const huge = (total: number) => count('huge', total, { labels: { x: 'x'.repeat(66_000) } });
  rig.show([count('a', 2), huge(1), count('b', 1)]);
  await rig.flush();
  rig.show([count('a', 5), huge(1), count('b', 1)]);
  await rig.flush();
  await until('the others arrive', () => target.lines().length === 3);
  const tail = '|c|#instance:host1';
  expect(target.lines()).toEqual([`a:2${tail}`, `b:1${tail}`, `a:3${tail}`]);
  expect(rig.failures).toEqual(['too_large', 'too_large']);
  expect(rig.dropped.size).toBe(0);
});

describe('the name', () => {
  const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });

  test('cannot be resolved at the start: nothing is lost but gauges, and they are counted', async () => {
    const target = await aggregator();
    let known = false;
    const lookup = async () => {
      if (!known) throw unknown;
      return [{ address: '127.0.0.1', family: 4 }];
    };
    const rig = await startPush({ hostPort: `statsd.test:${target.port}`, tagFormat: 'none' }, { lookup });
    for (const total of [2, 3]) {
      rig.show([count('a', total), gauge('g', total)]);
      await rig.flush();
    }
    // A series that is gone meanwhile still has increases to send.
    rig.show([]);
    await rig.flush();
    expect(rig.failures).toEqual(['resolve', 'resolve', 'resolve']);
    expect(Object.fromEntries(rig.dropped)).toEqual({ resolve_failed: 2 });
    known = true;
    await rig.flush();
    await rig.flush();
    await until('the delta arrives', () => target.lines().length > 0);
    expect(target.lines()).toEqual(['a:3|c']);
  });

  test('cannot be resolved any more: the last address is used on, the failure counted', async () => {
    const target = await aggregator();
    let known = true;
    const lookup = async () => {
      if (!known) throw unknown;
      return [{ address: '127.0.0.1', family: 4 }];
    };
    const rig = await startPush({ hostPort: `statsd.test:${target.port}`, tagFormat: 'none' }, { lookup });
    for (let total = 1; total <= 12; total++) {
      rig.show([count('a', total)]);
      await rig.flush();
      known = false;
    }
    await until('all of it arrives', () => sumOf(target) === 12);
    expect(rig.failures).toContain('resolve');
    expect(rig.dropped.size).toBe(0);
  });

  test('is looked up in vain: the flush gives up after 2 s, and the next one tries again', async () => {
    let lookups = 0;
    const lookup = () => {
      lookups += 1;
      return new Promise<never>(() => {});
    };
    const rig = await startPush({ hostPort: 'statsd.test:9', tagFormat: 'none' }, { lookup });
    rig.show([count('a', 1)]);
    rig.clock.advance(1000);
    await until('the first look-up is under way', () => lookups === 1);
    rig.clock.advance(1999);
    expect(rig.failures).toEqual([]);
    rig.clock.advance(1);
    await until('it is given up', () => rig.failures.length === 1);
    rig.clock.advance(1000);
    await until('the next one is under way', () => lookups === 2);
    rig.clock.advance(2000);
    await until('it is given up too', () => rig.failures.length === 2);
    expect(rig.failures).toEqual(['resolve', 'resolve']);
    const stopping = rig.stop();
    await until('the last flush is under way', () => lookups === 3);
    rig.clock.advance(2000);
    await stopping;
  });
});

test('an address that no socket can reach is a failure like others', async () => {
  const open = () => {
    throw Object.assign(new Error('socket EMFILE'), { code: 'EMFILE' });
  };
  const rig = await startPush({ tagFormat: 'none' }, { open });
  rig.show([count('a', 1), gauge('g', 1)]);
  await rig.flush();
  expect(rig.failures).toEqual(['failed']);
  expect(Object.fromEntries(rig.dropped)).toEqual({ send_failed: 1 });
});
