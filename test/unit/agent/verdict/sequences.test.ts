import { describe, expect, test } from 'vitest';
import { createRandom } from '../../../../examples/service/random.ts';
import { fleet } from '../../../fleet/judged.ts';
import type { RoleName, WorldState } from '../../../fleet/world.ts';

/**
 * Faults one after the other, with pauses from half a minute on, so that what one leaves behind is still seen when the next one
 * begins. The oracle is when each was injected.
 */

interface Fault {
  set(state: WorldState, role: RoleName, isOn: boolean): void;
  /** What the fault may be called, for its role. */
  names(role: RoleName): RegExp;
}

const roleNames: readonly RoleName[] = ['frontend', 'history', 'matching', 'worker'];
const faults: Readonly<Record<string, Fault>> = {
  store: {
    set({ store }, _, isOn) {
      store.failure = isOn ? ['refused', 'connect ECONNREFUSED 10.0.0.1:5432', 'connect'] : undefined;
    },
    names: () => /^store_down\//,
  },
  gone: {
    set({ roles }, role, isOn) {
      roles[role].gone = isOn;
    },
    names: (role) => new RegExp(`^(role_down|role_failing|scrape_down)/${role}$`),
  },
  crash: {
    set({ roles }, role, isOn) {
      roles[role].crashesWith = isOn ? 'bootstrap ringpop: join duration exceeded 30 s' : undefined;
    },
    names: (role) => new RegExp(`^(role_down|role_failing|scrape_down|crash_loop|fatal)/${role}$`),
  },
  errors: {
    set({ roles }, role, isOn) {
      roles[role].ownErrors = isOn ? 15 : 0;
    },
    names: (role) => new RegExp(`^persistence_errors/${role}$`),
  },
  page: {
    set({ roles }, role, isOn) {
      roles[role].pageClosed = isOn;
    },
    names: (role) => new RegExp(`^scrape_down/${role}$`),
  },
};

const stepMs = 15_000;
/** A start may be this much too early: the fault is injected between two looks. */
const toleranceMs = stepMs;

/** Plays five faults, and returns which were not named, and which errors were said to have begun before they did. */
function played(seed: number): string[] {
  const random = createRandom(seed);
  const agent = fleet();
  const { world, pass } = agent;
  const wrong: string[] = [];
  const began: { names: RegExp; fromMs: number }[] = [];
  pass(70);
  for (let i = 0; i < 5; i++) {
    const [kind, fault] = Object.entries(faults)[random.integer(0, 3)]!;
    const role = roleNames[random.integer(0, 3)]!;
    fault.set(world.state, role, true);
    began.push({ names: fault.names(role), fromMs: agent.lookedMs + stepMs });
    const reports = pass(random.integer(5, 24));
    const causes = reports.flatMap(({ verdict }) =>
      verdict.problems.filter(({ causedBy }) => causedBy === undefined),
    );
    if (!causes.some(({ id }) => fault.names(role).test(id))) wrong.push(`${kind} ${role} was not named`);
    fault.set(world.state, role, false);
    pass(random.integer(2, 40));
  }
  for (const { id, cause, start } of pass(90).at(-1)!.incidents) {
    if (cause !== 'persistence_errors') continue;
    const own = began.filter(({ names }) => names.test(id)).map(({ fromMs }) => fromMs);
    // Errors that a store or a role leaves behind have no fault of their own.
    const isEarly = own.every((fromMs) => Date.parse(start) < fromMs - toleranceMs);
    if (own.length > 0 && isEarly) wrong.push(`${id} began at ${start}`);
  }
  return wrong;
}

/** An agent that knows the usual values of a fleet without faults, and injects faults for a number of looks. */
function settled() {
  const agent = fleet();
  agent.pass(70);
  return {
    agent,
    pass: agent.pass,
    /** Returns when the fault began and ended. The agent restarts before the look of this number. */
    suffer(kind: string, role: RoleName, looks: number, restartsAt = Number.POSITIVE_INFINITY) {
      const fromMs = agent.lookedMs;
      const fault = faults[kind]!;
      fault.set(agent.world.state, role, true);
      for (let at = 0; at < looks; at++) {
        if (at === restartsAt) agent.restart();
        agent.pass(1);
      }
      fault.set(agent.world.state, role, false);
      return { fromMs, untilMs: agent.lookedMs };
    },
    /** The incidents once everything is over, oldest first. */
    incidents: () =>
      agent
        .pass(90)
        .at(-1)!
        .incidents.toSorted((a, b) => a.start.localeCompare(b.start)),
  };
}

const within = (time: string, atMs: number, steps = 2) =>
  expect(Math.abs(Date.parse(time) - atMs)).toBeLessThanOrEqual(steps * stepMs);

describe('a role that crashes in a loop', () => {
  test.each([
    ['and then runs', 0, 0],
    ['and then is gone for a while', 10, 0],
    ['for a while, and is gone a minute later', 12, 4],
  ])('%s: one incident, until the role is back', (_, gone, pauses) => {
    const { pass, suffer, incidents } = settled();
    suffer('crash', 'history', 40);
    pass(pauses);
    const { untilMs } = suffer('gone', 'history', gone);
    const found = incidents();
    expect(found.map(({ id }) => id)).toEqual(['crash_loop/history']);
    within(found[0]!.end, untilMs);
  });
  test.each([
    ['a minute later: one incident', 4, ['crash_loop/history']],
    // Then it is not known any more whether the role crashes.
    ['minutes later: two incidents', 12, ['crash_loop/history', 'role_down/history']],
  ])('while the agent restarts, and is gone %s, until the role is back', (_, pauses, ids) => {
    const { pass, suffer, incidents } = settled();
    suffer('crash', 'history', 17, 15);
    pass(pauses);
    const { fromMs, untilMs } = suffer('gone', 'history', 6);
    const found = incidents();
    expect(found.map(({ id }) => id)).toEqual(ids);
    within(found.at(-1)!.end, untilMs);
    for (const { end } of found.slice(0, -1)) expect(Date.parse(end)).toBeLessThan(fromMs);
  });
  test.each([
    ['page', 'scrape_down/frontend', 'is a problem of its own'],
    ['gone', 'crash_loop/frontend', 'belongs to it'],
  ])('minutes after the last crash, the fault "%s" (%s) %s', (kind, id) => {
    const { pass, suffer, incidents } = settled();
    const crash = suffer('crash', 'frontend', 40);
    pass(10);
    const { untilMs } = suffer(kind, 'frontend', 6);
    const found = incidents();
    expect(found.map((one) => one.id)).toEqual([...new Set(['crash_loop/frontend', id])]);
    within(found[0]!.end, kind === 'page' ? crash.untilMs : untilMs, 1);
  });
  test('and then is gone for good is down since then', () => {
    const { agent, pass, suffer } = settled();
    suffer('crash', 'history', 40);
    pass(4);
    const goneMs = agent.lookedMs;
    faults.gone!.set(agent.world.state, 'history', true);
    const { verdict, incidents } = pass(120).at(-1)!;
    expect(verdict.cause?.id).toBe('role_down/history');
    within(verdict.cause!.since, goneMs);
    expect(incidents.map(({ id }) => id)).toEqual(['crash_loop/history']);
    expect(Date.parse(incidents[0]!.end)).toBeLessThanOrEqual(goneMs);
  });
});

describe('errors that come back after a restart of the agent', () => {
  /** How long the errors last, when the agent restarts after their end, and when they come back, in quarters of a minute. */
  test.each([
    ['a quarter of a minute after their end', 6, 1, 11],
    ['a minute after their end', 6, 4, 11],
    ['a minute after their end, long ones', 40, 4, 20],
  ])('%s', (_, lasts, restartsAfter, pauses) => {
    const { agent, pass, suffer, incidents } = settled();
    const first = suffer('errors', 'history', lasts);
    pass(restartsAfter);
    agent.restart();
    pass(pauses - restartsAfter);
    const spans = [first, suffer('errors', 'history', lasts)];
    const found = incidents();
    expect(found.map(({ id }) => id)).toEqual(Array(2).fill('persistence_errors/history'));
    for (const [i, { start, end }] of found.entries()) {
      within(start, spans[i]!.fromMs);
      within(end, spans[i]!.untilMs);
    }
  });
  test('and whose first ones were there when the agent restarted', () => {
    const { pass, suffer, incidents } = settled();
    const spans = [suffer('errors', 'history', 12, 6)];
    pass(12);
    spans.push(suffer('errors', 'history', 12));
    const found = incidents();
    expect(found.map(({ id }) => id)).toEqual(Array(2).fill('persistence_errors/history'));
    for (const [i, { start, end }] of found.entries()) {
      within(start, spans[i]!.fromMs);
      within(end, spans[i]!.untilMs);
    }
  });
});

describe('faults one after the other', () => {
  test.each(Array.from({ length: 40 }, (_, seed) => seed))(
    'seed %i: each is named, from its start on',
    (seed) => {
      expect(played(seed)).toEqual([]);
    },
  );
});
