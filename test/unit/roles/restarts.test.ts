import { describe, expect, test } from 'vitest';
import { createRoles } from '../../../src/agent/role-restarts.ts';
import type { Log, Readings } from '../../../src/core/ports.ts';
import type { ProbeFailureReason } from '../../../src/core/reasons.ts';
import { createDurableStore } from '../../../src/core/registry/durable-store.ts';
import { testRegistry } from '../../registry.ts';

const silent: Log = { write() {}, named: () => silent };
const minuteMs = 60_000;

const readingsOf = (values: Readonly<Record<string, number>>): Readings => ({
  values: (family) => (family in values ? [{ labels: {}, value: values[family]! }] : []),
});

/** One run of the agent; `next` is the run that follows, with the state of the last commit. */
function life(before?: { section: Uint8Array; table: Uint8Array; values: Float64Array }) {
  const durable = createDurableStore();
  if (before) durable.restore(before.table, before.values);
  const bed = testRegistry({ durable });
  const roles = createRoles({ clock: bed.clock, log: silent });
  if (before) roles.durable.restore(before.section);
  roles.configure(['history'], (service) =>
    bed.registry.intake({
      service,
      component: 'probes',
      relayed: false,
      rank: 0,
      store: durable,
      globalTags: {},
      received: false,
      tagService: true,
    }),
  );
  return {
    clock: bed.clock,
    health: (...reasons: (ProbeFailureReason | 'ok')[]) => {
      for (const reason of reasons) roles.healthChecked('history', reason === 'ok' ? undefined : reason);
    },
    page: (fallen: number, counters: number, values = {}) =>
      roles.scraped('history', { fallen, counters }, readingsOf(values)),
    /** Pages of 100 counters of which so many fell. */
    pages: (...fallen: number[]) => {
      for (const each of fallen) roles.scraped('history', { fallen: each, counters: 100 }, readingsOf({}));
    },
    entry: () => roles.logged('history'),
    starts: (...lines: string[]) => {
      for (const line of lines) roles.started('history', line);
    },
    restarts: () => {
      bed.commit();
      return bed.shown()['svc_role_restarts_total{svc_service="history"}'];
    },
    next() {
      const frozen = durable.freeze();
      return life({ section: roles.durable.freeze(), table: frozen.table, values: frozen.values });
    },
  };
}
type Life = ReturnType<typeof life>;

describe('a role that says that it warms up', () => {
  const started = (seconds: number) => ({ process_start_time_seconds: seconds });
  const collected = (times: number) => ({ svc_memory_num_gc: times });
  test.each([
    ['and is the same process', started(1_000), started(1_000), 0],
    ['and is another process', started(1_000), started(2_000), 1],
    ['and has collected more garbage', collected(50), collected(51), 0],
    ['and has collected less garbage', collected(50), collected(2), 1],
    ['and has pages that do not tell one process from another', {}, {}, 1],
  ])('%s', (_, before, after, restarts) => {
    const agent = life();
    agent.page(0, 100, before);
    agent.health('ok', 'warming_up', 'warming_up');
    agent.page(0, 100, after);
    agent.health('ok');
    agent.page(0, 100, after);
    expect(agent.restarts()).toBe(restarts);
  });
  test('is one restart if the page, whose counters fell, came before the check', () => {
    const agent = life();
    agent.page(0, 100, started(1_000));
    agent.health('ok');
    agent.page(90, 100, started(2_000));
    agent.health('warming_up');
    agent.page(0, 100, started(2_000));
    expect(agent.restarts()).toBe(1);
  });
  test('while the agent is restarted, is judged by the first page of the new agent', () => {
    for (const [after, restarts] of [
      [1_000, 0],
      [2_000, 1],
    ] as const) {
      const agent = life();
      agent.page(0, 100, started(1_000));
      agent.health('ok', 'warming_up');
      const next = agent.next();
      next.page(0, 100, started(after));
      expect(next.restarts()).toBe(restarts);
    }
  });
  test('after it was gone restarted, whatever its page says', () => {
    const agent = life();
    agent.page(0, 100, started(1_000));
    agent.health('ok', 'refused', 'warming_up');
    expect(agent.restarts()).toBe(1);
  });
});

describe('restarts of a role', () => {
  test.each<[string, (agent: Life) => void, number]>([
    ['nothing', () => {}, 0],
    ['a role that is there', (agent) => agent.health('ok', 'ok'), 0],
    ['a role that begins after the agent', (agent) => agent.health('refused', 'refused', 'ok'), 0],
    ['gone and back', (agent) => agent.health('ok', 'refused', 'refused', 'ok'), 1],
    ['gone and back, ill', (agent) => agent.health('ok', 'refused', 'persistence'), 1],
    ['gone, warming up, well', (agent) => agent.health('ok', 'refused', 'warming_up', 'ok'), 1],
    ['well, then warming up', (agent) => agent.health('ok', 'warming_up', 'warming_up', 'ok'), 1],
    ['shutting down, then well', (agent) => agent.health('ok', 'shutting_down', 'ok'), 1],
    ['shutting down, gone, well', (agent) => agent.health('ok', 'shutting_down', 'refused', 'ok'), 1],
    ['ill and well again', (agent) => agent.health('ok', 'not_ok', 'persistence', 'ok'), 0],
    ['a path that breaks', (agent) => agent.health('ok', 'connect_timeout', 'resolve', 'ok'), 0],
    ['gone, a broken path, back', (agent) => agent.health('ok', 'refused', 'connect_timeout', 'ok'), 1],
    ['a page whose counters fall', (agent) => agent.page(90, 100), 0],
    ['a later page whose counters fall', (agent) => agent.pages(0, 90), 1],
    ['a fifth of the counters that falls', (agent) => agent.pages(0, 20), 1],
    ['less than a fifth of the counters that falls', (agent) => agent.pages(0, 19), 0],
    ['one counter of many that falls', (agent) => agent.pages(0, 1), 0],
    [
      'the lines of a first start',
      (agent) => agent.starts('Starting service', 'service started', 'history started'),
      0,
    ],
    [
      'the lines of a start after others',
      (agent) => {
        agent.entry();
        agent.starts('Starting service', 'service started');
      },
      1,
    ],
    [
      'a first start and another soon after',
      (agent) => agent.starts('Starting service', 'service started', 'Starting service', 'service started'),
      1,
    ],
    [
      'three starts in a crash loop, of which health sees one',
      (agent) => {
        agent.health('ok', 'refused');
        agent.starts('service started', 'service started');
        agent.health('ok');
        agent.starts('service started');
      },
      3,
    ],
    [
      'one restart that all three see',
      (agent) => {
        agent.health('ok');
        agent.page(0, 100);
        agent.entry();
        agent.starts('Starting service', 'service started');
        agent.clock.advance(15_000);
        agent.health('refused', 'ok');
        agent.clock.advance(15_000);
        agent.page(95, 100);
      },
      1,
    ],
    [
      'two restarts, minutes apart, each seen by another',
      (agent) => {
        agent.health('ok', 'refused', 'ok');
        agent.clock.advance(5 * minuteMs);
        agent.page(0, 10);
        agent.page(10, 10);
      },
      2,
    ],
    [
      'a clock that is set back does not count twice',
      (agent) => {
        agent.health('ok', 'refused', 'ok');
        agent.clock.jumpTo(agent.clock.nowMs() - minuteMs);
        agent.page(0, 10);
        agent.page(10, 10);
      },
      1,
    ],
  ])('%s', (_, happens, expected) => {
    const agent = life();
    happens(agent);
    expect(agent.restarts()).toBe(expected);
  });
});

describe('across the agent’s own restarts', () => {
  const began = (seconds: number, counters: number) => (agent: Life) =>
    agent.page(0, counters, { process_start_time_seconds: seconds });
  test.each<[string, (agent: Life) => void, (agent: Life) => void, number]>([
    ['a role that stayed', (agent) => agent.health('ok'), (agent) => agent.health('ok'), 0],
    ['gone before, back after', (agent) => agent.health('ok', 'refused'), (agent) => agent.health('ok'), 1],
    [
      'one restart, seen before by its log and after by its page',
      (agent) => {
        agent.page(0, 10, { svc_memory_num_gc: 500 });
        agent.starts('service started');
      },
      (agent) => agent.page(0, 0, { svc_memory_num_gc: 3 }),
      1,
    ],
    ['a process that began while nobody looked', began(1000, 10), began(2000, 0), 1],
    ['the same process, whose start time is rounded otherwise', began(1000, 10), began(1001, 0), 0],
    ['a process that began two seconds after the other', began(1000, 10), began(1002, 0), 1],
    [
      'a page that tells the runs of a process apart by another value than the page before',
      began(1000, 10),
      (agent) => agent.page(0, 0, { svc_memory_num_gc: 3 }),
      0,
    ],
    [
      'as many collections as before',
      (agent) => agent.page(0, 10, { svc_memory_num_gc: 500 }),
      (agent) => agent.page(0, 0, { svc_memory_num_gc: 500 }),
      0,
    ],
    [
      'the same process',
      (agent) => agent.page(0, 10, { process_start_time_seconds: 1000, svc_memory_num_gc: 5 }),
      (agent) => agent.page(0, 0, { process_start_time_seconds: 1000, svc_memory_num_gc: 9 }),
      0,
    ],
    [
      'start-up lines that are read late, each once',
      (agent) => agent.entry(),
      (agent) => agent.starts('service started', 'service started'),
      2,
    ],
  ])('%s', (_, before, after, expected) => {
    const agent = life();
    before(agent);
    const counted = Number(agent.restarts());
    const next = agent.next();
    expect(next.restarts()).toBe(counted);
    after(next);
    expect(next.restarts()).toBe(expected);
  });

  test('a section that nobody wrote is refused', () => {
    const roles = createRoles({ clock: testRegistry().clock, log: silent });
    expect(() => roles.durable.restore(Buffer.from('{'))).toThrow(
      'state: section roles: not what this version writes',
    );
  });
});
