import { createRandom } from '../../examples/service/random.ts';
import { type IncidentType, incidentTypes, inject, isAbout, isBehind, isNamedIn } from './incidents.ts';
import { fleet } from './judged.ts';

/** Holds the verdict against what was injected: pairs of faults that overlap in any way, in the simulated fleet. */

/** The agent looks once in this time; all other numbers here are looks. */
const lookMs = 15_000;
const warmUp = 70;
const pairs = 3;
/** How much later or earlier a start and an end may be told: a check and the look that follows it. */
const [startTolerance, endTolerance] = [1.5, 2.5];
export const marks = [
  'faults',
  'unnamed',
  'wrong',
  'early',
  'late',
  'ends late',
  'ends early',
  'several',
] as const;
export type Mark = (typeof marks)[number];

/** A fault of a pair. Times are looks. */
interface Fault {
  type: IncidentType;
  start: number;
  end: number;
  isNamed: boolean;
  /** Whether another fault breaks all that this one shows. */
  isHidden: boolean;
  /** Whether it was put under a problem that is no effect of an injected fault. */
  isWrong: boolean;
}

type Random = ReturnType<typeof createRandom>;
type Report = ReturnType<ReturnType<typeof fleet>['look']>;

/** The looks after which a fault that is alone is named as a cause. */
function needOf(type: IncidentType): number {
  const { world, look, pass } = fleet();
  pass(warmUp);
  inject(type, world.state);
  for (let looks = 1; looks < 100; looks++)
    if (look().verdict.problems.some(({ causedBy, what }) => !causedBy && isNamedIn(type, what)))
      return looks;
  return Number.POSITIVE_INFINITY;
}

/** The types that the fleet can end again by healing the world, and that are named when they are alone. */
const needs = new Map(incidentTypes.map((type) => [type, needOf(type)]));
const types = incidentTypes.filter((type) => needs.get(type)! < 100);

/** Where the second fault of a pair begins and ends, for a first one that lasts from `start` to `end`. */
const overlaps: readonly ((start: number, end: number, random: Random) => [number, number])[] = [
  (start, end, random) => [random.integer(start + 1, end), random.integer(end + 1, end + 100)],
  (start, end, random) => [random.integer(start + 1, end - 1), end],
  (start, end) => [start, end],
  (start, end, random) => [start, random.integer(start + 5, end + 100)],
  (_, end, random) => [end + random.integer(2, 40), end + random.integer(50, 160)],
];

function planned(random: Random): { faults: Fault[]; looks: number } {
  const faults: Fault[] = [];
  const one = <T>(of: readonly T[]): T => of[random.integer(0, of.length - 1)]!;
  const add = (type: IncidentType, start: number, end: number) =>
    faults.push({ type, start, end, isNamed: false, isHidden: false, isWrong: false });
  let at = warmUp;
  for (let pair = 0; pair < pairs; pair++) {
    const first = one(types);
    const others = types.filter(({ place }) => place === undefined || place !== first.place);
    const end = at + Math.round(5 * 32 ** random.next());
    add(first, at, end);
    const [otherStart, otherEnd] = one(overlaps)(at, end, random);
    add(one(others.filter((type) => type !== first)), otherStart, otherEnd);
    at = Math.max(end, otherEnd) + random.integer(2, 40);
  }
  return { faults, looks: at + 90 };
}

const fades = ({ type: { fadesMinutes = 0 }, end }: Fault): number =>
  end + 8 + (fadesMinutes * 60_000) / lookMs;

/** Notes how a report shows the faults that are there at this look. */
function note({ verdict: { problems } }: Report, faults: readonly Fault[], at: number): void {
  const active = faults.filter(({ start, end }) => start <= at && at < end);
  const near = faults.filter(({ start, end }) => start <= at && at < end + 8);
  for (const fault of active) {
    const { type } = fault;
    fault.isHidden ||= active.some(
      (other) =>
        other !== fault &&
        (isBehind(type, other.type) || (type.witness !== undefined && type.witness === other.type.place)),
    );
    for (const { causedBy } of problems.filter(({ what }) => isNamedIn(type, what))) {
      fault.isNamed ||= causedBy === undefined;
      const cause = problems.find(({ id }) => id === causedBy)?.what;
      if (cause === undefined || isAbout(type, cause)) continue;
      const by = near.find((other) => other !== fault && isAbout(other.type, cause));
      if (by && isBehind(type, by.type)) fault.isHidden = true;
      else fault.isWrong = true;
    }
  }
}

/** The incidents of each fault, as looks, and the number of incidents that belong to none. */
function incidentsOf(faults: readonly Fault[], { incidents }: Report, firstMs: number) {
  const own = new Map(faults.map((fault) => [fault, [] as { start: number; end: number }[]]));
  let foreign = 0;
  for (const { what, ...times } of incidents) {
    const [start, end] = [times.start, times.end].map((time) => (Date.parse(time) - firstMs) / lookMs);
    const may = faults.filter(
      (fault) => isAbout(fault.type, what) && start! < fades(fault) && end! > fault.start - 2,
    );
    const said = may.filter(({ type }) => isNamedIn(type, what));
    const [nearest] = (said.length > 0 ? said : may).sort(
      (a, b) => Math.abs(a.start - start!) - Math.abs(b.start - start!),
    );
    if (nearest) own.get(nearest)!.push({ start: start!, end: end! });
    else foreign++;
  }
  return { own, foreign };
}

/** What is wrong with a fault. */
function marksOf(fault: Fault, incidents: readonly { start: number; end: number }[]): Mark[] {
  const { type, start, end, isNamed, isHidden, isWrong } = fault;
  const found: Mark[] = ['faults'];
  const isShort = end - start <= needs.get(type)! + 2;
  if (!isNamed && !isHidden && !isShort) found.push('unnamed');
  if (isWrong) found.push('wrong');
  if (incidents.length === 0) return found;
  if (incidents.length > 1) found.push('several');
  const begun = Math.min(...incidents.map((one) => one.start));
  const over = Math.max(...incidents.map((one) => one.end));
  if (begun < start - startTolerance) found.push('early');
  if (begun > start + startTolerance && !isHidden) found.push('late');
  if (over > end + endTolerance) found.push('ends late');
  if (over < end - endTolerance && !isHidden) found.push('ends early');
  return found;
}

/** What the verdict got wrong about three pairs of faults. */
interface Played {
  /** For each fault, what is wrong with it: `faults` and the other marks that apply. */
  marked: readonly { type: IncidentType; marks: readonly Mark[] }[];
  /** The number of incidents that belong to no fault. */
  foreign: number;
}

/** Plays three pairs of faults. The agent restarts at `restartsPercent` of its looks. */
export function played(seed: number, restartsPercent = 0): Played {
  const random = createRandom(seed);
  const { faults, looks } = planned(random);
  const agent = fleet();
  let report: Report | undefined;
  let firstMs = 0;
  for (let at = 0; at < looks; at++) {
    if (faults.some(({ start, end }) => start === at || end === at)) {
      agent.world.heal();
      for (const { type, start, end } of faults) if (start <= at && at < end) inject(type, agent.world.state);
    }
    if (random.next() * 100 < restartsPercent) agent.restart();
    report = agent.look();
    if (at === 0) firstMs = agent.lookedMs;
    note(report, faults, at);
  }
  const { own, foreign } = incidentsOf(faults, report!, firstMs);
  const marked = [...own].map(([fault, incidents]) => ({
    type: fault.type,
    marks: marksOf(fault, incidents),
  }));
  return { marked, foreign };
}
