import { expect, test } from 'vitest';
import type { StatusReport, Verdict } from '../../../../src/agent/report.ts';
import { type IncidentType, incidentTypes, inject, isAbout, isBehind } from '../../../fleet/incidents.ts';
import { fleet } from '../../../fleet/judged.ts';
import { bySize } from '../../../size.ts';

/**
 * Courses of incidents over time: within planned work, minutes apart, one that outlasts another, one that comes back. The first
 * sentence must name the faults of the fleet.
 */

/** The number of samples in a minute. */
const minute = 4;
/** The time until a silent canary is seen: a quarter of an hour, plus two minutes. */
const longestUnseen = 17 * minute;

type Judged = Pick<StatusReport, 'verdict'>;
const isNamed = ({ says }: IncidentType, { verdict }: Judged) => says.test(verdict.sentence);
/** Problems that the verdict calls causes and that belong to none of the faults. */
const strange = ({ problems }: Verdict, ...faults: IncidentType[]): string[] =>
  problems
    .filter(({ causedBy, what }) => causedBy === undefined && !faults.some((fault) => isAbout(fault, what)))
    .map(({ what }) => what);

const isElsewhere = (one: IncidentType, other: IncidentType) =>
  one !== other && (one.place === undefined || one.place !== other.place);
/** Every pair of faults of which one can be hidden behind the other. */
const hidden = incidentTypes.flatMap((behind) =>
  incidentTypes
    .filter((before) => isElsewhere(behind, before) && isBehind(behind, before))
    .map((before) => [behind, before] as const),
);
const every = <T>(all: readonly T[], steps: Record<'short' | 'long' | 'nightly', number>, from = 0) =>
  all.filter((_, i) => i % bySize(steps) === from % bySize(steps));
const named = (pairs: readonly (readonly [IncidentType, IncidentType])[]) =>
  pairs.map(([one, other]) => [one.name, other.name, one, other] as const);
const alone = (types: readonly IncidentType[]) => types.map((type) => [type.name, type] as const);
const typeNamed = (name: string) => incidentTypes.find((type) => type.name === name)!;

/** The role to which planned work applies: the role with the fault, or else the store. */
const workOn = ({ place }: IncidentType) =>
  incidentTypes.find(({ name }) => name === `${place} is killed`) ?? typeNamed('store is shutting down');

test.each(alone(every(incidentTypes, { short: 9, long: 5, nightly: 1 })))(
  'planned work, and in it, in the same place: %s',
  (_, fault) => {
    const { world, judge, pass } = fleet();
    const [{ verdict: well } = { verdict: undefined }] = pass(6 * minute).slice(-1);
    expect(well?.level).toBe('ok');
    const now = Date.parse(pass(1)[0]!.changes[0]?.at ?? '2026-03-01T08:06:15.000Z');
    const until = new Date(now + 20 * 60_000).toISOString();
    judge.announce({ at: new Date(now).toISOString(), kind: 'maintenance', what: 'new disks', until });
    inject(workOn(fault), world.state);
    const stopped = pass(2 * minute).at(-1)!;
    expect(isNamed(workOn(fault), stopped)).toBe(true);
    world.heal();
    inject(fault, world.state);
    const during = pass(longestUnseen).at(-1)!;
    expect(during.verdict.sentence).toMatch(/ Planned work until 08:26:15 UTC: new disks\.$/);
    const after = pass(2 * minute).at(-1)!;
    expect(after.verdict.sentence).not.toContain('Planned work');
    for (const report of [during, after]) {
      expect(isNamed(fault, report)).toBe(true);
      expect(strange(report.verdict, fault)).toEqual([]);
    }
  },
);

test.each(
  named(
    // A role that logs fatal entries has its own reason.
    every(hidden, { short: 80, long: 32, nightly: 1 }, 3).filter(([first]) => first.name !== 'a fatal entry'),
  ),
)('%s, and a quarter of an hour later %s: both are named', (_, __, first, second) => {
  const { world, pass } = fleet();
  pass(6 * minute);
  inject(first, world.state);
  const alone = pass(longestUnseen).at(-1)!;
  inject(second, world.state);
  const both = pass(longestUnseen);
  for (const report of [alone, ...both]) expect(isNamed(first, report)).toBe(true);
  expect(isNamed(second, both.at(-1)!)).toBe(true);
  expect(strange(both.at(-1)!.verdict, first, second)).toEqual([]);
});

test.each(named(every(hidden, { short: 80, long: 32, nightly: 1 }, 5)))(
  '%s lasts when %s, which hid it, is over: it is named, and the other is not',
  (_, __, lasting, cause) => {
    const { world, pass } = fleet();
    pass(6 * minute);
    inject(cause, world.state);
    pass(3 * minute);
    inject(lasting, world.state);
    pass(10 * minute);
    world.heal();
    inject(lasting, world.state);
    const fading = pass((cause.fadesMinutes ?? 0) * minute);
    const over = pass(longestUnseen + 5 * minute);
    for (const { verdict } of [...fading, ...over])
      if (verdict.cause) expect(verdict.problems).not.toEqual([]);
    const present = over
      .flatMap(({ verdict }) => strange(verdict, lasting))
      .filter((what) => isAbout(cause, what));
    expect(present).toEqual([]);
    expect(isNamed(lasting, over.at(-1)!)).toBe(true);
    expect(strange(over.at(-1)!.verdict, lasting)).toEqual([]);
  },
);

test.each(
  alone(every(incidentTypes, { short: 12, long: 6, nightly: 1 })).flatMap(([name, type]) =>
    bySize({ short: [6], long: [1, 8], nightly: [1, 4, 6, 8, 12] }).map(
      (pause) => [name, pause, type] as const,
    ),
  ),
)(
  '%s ends and is back %d quarters of a minute later: nothing else is a cause once it is seen',
  (_, pause, type) => {
    const { world, pass } = fleet();
    pass(6 * minute);
    inject(type, world.state);
    pass(longestUnseen);
    world.heal();
    const gone = pass(pause);
    for (const { verdict } of gone) expect(strange(verdict, type)).toEqual([]);
    inject(type, world.state);
    const back = pass(longestUnseen);
    const seen = back.slice(back.findIndex((report) => isNamed(type, report)));
    for (const { verdict } of seen) expect(strange(verdict, type)).toEqual([]);
    expect(isNamed(type, back.at(-1)!)).toBe(true);
    expect(back.at(-1)!.incidents.filter(({ what }) => !isAbout(type, what))).toEqual([]);
  },
);

test.each(alone(every(incidentTypes, { short: 8, long: 4, nightly: 1 }, 1)))(
  '%s lasts while the agent is restarted: it is never told to be well, and one incident is left',
  (_, type) => {
    const { world, pass, restart } = fleet();
    pass(6 * minute);
    inject(type, world.state);
    const before = pass(longestUnseen + 3 * minute).at(-1)!;
    restart();
    const after = pass(longestUnseen);
    for (const { verdict } of after) {
      expect(verdict.level).not.toBe('ok');
      expect(strange(verdict, type)).toEqual([]);
    }
    expect(isNamed(type, after.at(-1)!)).toBe(true);
    const sinceOf = ({ verdict }: Judged) => verdict.problems.find(({ what }) => isAbout(type, what))?.since;
    expect(sinceOf(after.at(-1)!)).toBe(sinceOf(before));
    world.heal();
    const over = pass((type.fadesMinutes ?? 0) * minute + longestUnseen + 5 * minute).at(-1)!;
    expect(over.verdict.level).toBe('ok');
    expect(over.incidents.map(({ start }) => start)).toContain(sinceOf(before));
  },
);
