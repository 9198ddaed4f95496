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

describe('a role that crashes in a loop', () => {
  test.each([
    ['and then runs', 0, 0],
    ['and then is gone for a while', 10, 0],
    ['for a while, and is gone a minute later', 12, 4],
  ])('%s: one incident, until the role is back', (_, gone, pauses) => {
    const agent = fleet();
    const { world, pass } = agent;
    pass(70);
    faults.crash!.set(world.state, 'history', true);
    pass(40);
    faults.crash!.set(world.state, 'history', false);
    pass(pauses);
    faults.gone!.set(world.state, 'history', gone > 0);
    pass(gone);
    const untilMs = agent.lookedMs;
    faults.gone!.set(world.state, 'history', false);
    const found = pass(90).at(-1)!.incidents;
    expect(found.map(({ id }) => id)).toEqual(['crash_loop/history']);
    expect(Math.abs(Date.parse(found[0]!.end) - untilMs)).toBeLessThanOrEqual(2 * stepMs);
  });
  test.each([
    ['a minute later: one incident', 4, ['crash_loop/history']],
    // Then it is not known any more whether the role crashes.
    ['minutes later: two incidents', 12, ['role_down/history', 'crash_loop/history']],
  ])('while the agent restarts, and is gone %s, until the role is back', (_, pauses, ids) => {
    const agent = fleet();
    const { world, pass } = agent;
    pass(70);
    faults.crash!.set(world.state, 'history', true);
    pass(15);
    agent.restart();
    pass(2);
    faults.crash!.set(world.state, 'history', false);
    pass(pauses);
    const goneMs = agent.lookedMs;
    faults.gone!.set(world.state, 'history', true);
    pass(6);
    const untilMs = agent.lookedMs;
    faults.gone!.set(world.state, 'history', false);
    const found = pass(90).at(-1)!.incidents;
    expect(found.map(({ id }) => id)).toEqual(ids);
    expect(Math.abs(Date.parse(found[0]!.end) - untilMs)).toBeLessThanOrEqual(2 * stepMs);
    for (const { end } of found.slice(1)) expect(Date.parse(end)).toBeLessThan(goneMs);
  });
  test.each([
    ['a page that is lost minutes after the last crash is a problem of its own', 10, 'scrape_down/frontend'],
    ['a role that is gone minutes after the last crash belongs to it', 10, 'crash_loop/frontend'],
  ])('%s', (_, pauses, id) => {
    const agent = fleet();
    const { world, pass } = agent;
    pass(70);
    faults.crash!.set(world.state, 'frontend', true);
    pass(40);
    const backMs = agent.lookedMs;
    faults.crash!.set(world.state, 'frontend', false);
    pass(pauses);
    const isPage = id.startsWith('scrape_down');
    if (isPage) world.state.roles.frontend.pageClosed = true;
    else faults.gone!.set(world.state, 'frontend', true);
    const { verdict } = pass(6).at(-1)!;
    expect(verdict.problems.filter(({ causedBy }) => causedBy === undefined).map((one) => one.id)).toContain(
      id,
    );
    const untilMs = agent.lookedMs;
    world.state.roles.frontend.pageClosed = false;
    faults.gone!.set(world.state, 'frontend', false);
    const { incidents } = pass(90).at(-1)!;
    const loop = incidents.find((one) => one.cause === 'crash_loop')!;
    expect(Math.abs(Date.parse(loop.end) - (isPage ? backMs : untilMs))).toBeLessThanOrEqual(stepMs);
    expect(incidents.some((one) => one.cause === 'scrape_down')).toBe(isPage);
  });
  test('and then is gone for good is down since then', () => {
    const agent = fleet();
    const { world, pass } = agent;
    pass(70);
    faults.crash!.set(world.state, 'history', true);
    pass(40);
    faults.crash!.set(world.state, 'history', false);
    pass(4);
    const goneMs = agent.lookedMs;
    faults.gone!.set(world.state, 'history', true);
    const { verdict, incidents } = pass(120).at(-1)!;
    expect(verdict.cause?.id).toBe('role_down/history');
    expect(Math.abs(Date.parse(verdict.cause!.since) - goneMs)).toBeLessThanOrEqual(2 * stepMs);
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
    ['in their middle, long before', 12, -6, 12],
  ])('%s', (_, lasts, restartsAfter, pauses) => {
    const agent = fleet();
    const { world, pass } = agent;
    pass(70);
    const spans = [0, 1].map((i) => {
      const fromMs = agent.lookedMs;
      const restartAt = i === 0 ? lasts + restartsAfter : Number.POSITIVE_INFINITY;
      const passed = (looks: number, from: number) => {
        for (let n = 0; n < looks; n++) {
          if (from + n === restartAt) agent.restart();
          pass(1);
        }
      };
      faults.errors!.set(world.state, 'history', true);
      passed(lasts, 0);
      const untilMs = agent.lookedMs;
      faults.errors!.set(world.state, 'history', false);
      passed(i === 0 ? pauses : 90, lasts);
      return [fromMs, untilMs] as const;
    });
    const found = pass(1)[0]!.incidents.toSorted((a, b) => a.start.localeCompare(b.start));
    expect(found.map(({ id }) => id)).toEqual(Array(2).fill('persistence_errors/history'));
    for (const [i, { start, end }] of found.entries()) {
      const [fromMs, untilMs] = spans[i]!;
      expect(Math.abs(Date.parse(start) - fromMs)).toBeLessThanOrEqual(2 * stepMs);
      expect(Math.abs(Date.parse(end) - untilMs)).toBeLessThanOrEqual(2 * stepMs);
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
