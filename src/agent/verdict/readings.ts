import { toThousandths } from '../../core/text-formats.ts';
import { withUnit } from '../../monitoring/alert.ts';
import type { Exceeded } from '../report.ts';
import { type About, collect, countedTrack, type Origins, type Rows } from './collected.ts';
import { type Condition, type Counter, type Judged, leastPauseMs, rateMs } from './condition.ts';
import { conditions, truthOf } from './conditions.ts';
import { inNumber } from './kinds.ts';
import { createTracks, type Episode } from './tracks.ts';

/** The result of judging the values of the service. */
export interface ReadingsReport {
  exceeded: readonly Exceeded[];
  telemetryTruth: Readonly<Record<string, number>>;
  counted: Readonly<Record<string, string>>;
  versions: Readonly<Record<string, string>>;
}

/** Judges the values that sources and probes measure, sample by sample. */
interface ServiceReadings {
  /** Adds a sample. `monotonicMs` is used for spans, `nowMs` for the times that are reported. */
  sample(rows: Rows, now: { nowMs: number; monotonicMs: number }): void;
  report(): ReadingsReport;
}

/** A value that is above its limit, or was above it before its sources fell silent. */
interface Held {
  /** Since when the value has been above the limit, wall clock, ms. */
  aboveSinceMs: number;
  /** When the problem began, wall clock, ms: with the first of the events that show it. */
  sinceMs: number;
  /** When the value was last above the limit, monotonic ms. */
  aboveMs: number;
  /** The reported problem; unset until the value has been above the limit for long enough. */
  shown?: Exceeded;
}

/** The usual value is an average over some ten minutes of samples. */
const usualSamples = 40;
/** For how many values the usual value is stored. */
const mostUsual = 4_000;

const shownOf = ({ unit, shownTimes = 1 }: Condition, value: number): string => {
  const shown = value * shownTimes;
  return unit === 'none' ? countText(shown) : withUnit(unit === 'seconds' ? Math.round(shown) : shown, unit);
};

/**
 * Formats a number for people: whole from 10 on, with separated thousands. `Intl` would keep 7 MiB of its data in memory, and
 * take 12 ms to load them.
 */
function countText(value: number): string {
  const rounded = value < 9.95 ? toThousandths(Number(value.toPrecision(2))) : Math.round(value);
  return String(rounded).replace(/\d(?=(?:\d{3})+$)/g, '$&,');
}

/** The counter of the events that show a problem; undefined if no events show it. */
function countedBy({ of, counts, countedMs }: Condition, key: string, judged: Judged): Counter | undefined {
  if (typeof counts === 'function') return counts(key, judged);
  const name = counts ?? (countedMs ? of : undefined);
  return name === undefined ? undefined : [name, key];
}

/** The sources that belong to a role. */
const ownOf = (sources: readonly string[], role: string): string[] =>
  sources.filter((source) => source.endsWith(`/${role}`));

export function createServiceReadings(): ServiceReadings {
  const tracks = createTracks();
  let held = new Map<string, Held>();
  const usual = new Map<string, number>();
  const origins: Origins = new Map();
  const counted = new Map<string, string>();
  let seen: ReadonlySet<string> = new Set();
  let sampledMs = 0;
  let report: ReadingsReport = { exceeded: [], telemetryTruth: {}, counted: {}, versions: {} };

  const noteUsual = (id: string, value: number) => {
    const known = usual.get(id);
    if (known !== undefined) usual.set(id, known + (value - known) / usualSamples);
    else if (usual.size < mostUsual) usual.set(id, value);
  };

  /**
   * The sources of a condition's value. For a value that belongs to a role, these are only the sources of that role and of its
   * callee.
   */
  const originsOf = ({ of }: Condition, { role, callee }: About): string[] => {
    const all = [...(origins.get(of) ?? [])];
    const own = role === undefined ? all : ownOf(all, role);
    return callee === undefined ? own : [...own, `page/${callee}`];
  };

  /** Whether an episode began after a time in which nothing was counted although the sources counted other events. */
  const wasQuiet = ({ quietAgoMs, firstAgoMs }: Episode, from: readonly string[]): boolean => {
    const isCounting = (source: string) =>
      (tracks.episode(countedTrack, source, leastPauseMs)?.firstAgoMs ?? 0) >= firstAgoMs + leastPauseMs;
    return quietAgoMs !== undefined && from.every(isCounting);
  };

  /**
   * A value that was above its limit and is within it only because its sources have counted nothing since: for example a role
   * hangs while its page can still be read. An event within a span is over once anything was counted after it.
   */
  const silentOf = (
    { of, countedMs }: Condition,
    key: string,
    id: string,
    into: Map<string, Held>,
  ): Exceeded[] => {
    const known = held.get(id);
    const { from = [], about = {} } = known?.shown ?? {};
    const own = about.role === undefined ? from : ownOf(from, about.role);
    if (!known?.shown || own.length === 0) return [];
    const sinceMs = countedMs ? (tracks.unchangedMs(of, key) ?? 0) : sampledMs - known.aboveMs;
    const silentMs = Math.min(...own.map((source) => tracks.unchangedMs(countedTrack, source) ?? 0));
    if (silentMs < sinceMs) return [];
    into.set(id, known);
    return [{ ...known.shown, silent: own }];
  };

  /** The values of a condition that are above its limit, with their start times. */
  const judge = (condition: Condition, place: number, nowMs: number, into: Map<string, Held>): Exceeded[] => {
    const { kind, of, limit, noun } = condition;
    const { forMs = 0, heldMs = 0, countedMs = 0, spanMs = rateMs, pauseMs } = condition;
    const mayBegin = condition.begins?.if({ tracks, nowMs, spanMs }) ?? true;
    const clause = condition.begins && mayBegin ? `, ${condition.begins.clause}` : '';
    return tracks.keys(of).flatMap((key): Exceeded[] => {
      const id = `${place} ${key}`;
      const judged = { tracks, nowMs, spanMs };
      const value = condition.value(key, judged);
      if (value !== undefined && value <= limit) noteUsual(id, value);
      // What an earlier agent counted in the window is not known.
      const isPart = countedMs > 0 && value! > 0 && tracks.sampledMs() < countedMs;
      if (value === undefined || (value <= limit && !isPart)) return silentOf(condition, key, id, into);
      const counter = countedBy(condition, key, judged);
      const episode = counter && tracks.episode(...counter, leastPauseMs, pauseMs);
      const span = countedMs || spanMs;
      const newAgoMs = counter && tracks.newestAgoMs(...counter, span, limit / value);
      // After a pause, a single error is not a new problem, although the window still contains what was before the pause.
      const isOver = episode && (episode.isOver || (value > limit && newAgoMs! > episode.firstAgoMs));
      if (isOver) return silentOf(condition, key, id, into);
      const before = held.get(id);
      const aboveSinceMs = before?.aboveSinceMs ?? nowMs - heldMs;
      const excess = counter && tracks.excess(...counter, span, limit / value);
      const agoMs = episode ? Math.min(excess?.firstAgoMs ?? 0, episode.firstAgoMs) : heldMs;
      const sinceMs = before?.sinceMs ?? nowMs - agoMs;
      const one: Held = { aboveSinceMs, sinceMs, aboveMs: sampledMs };
      const isAbove = value > limit && (mayBegin || before !== undefined);
      if (isAbove) into.set(id, one);
      const begins = isAbove && mayBegin && nowMs - aboveSinceMs >= forMs;
      const about = JSON.parse(key) as About;
      const from = originsOf(condition, about);
      const known = usual.get(id);
      const shown = shownOf(condition, value);
      const atOf = (agoMs: number) => new Date(nowMs - agoMs).toISOString();
      one.shown = {
        kind,
        about,
        ...(from.length > 0 && { from }),
        value: `${shown} ${inNumber(noun, shown !== '1')}${clause}`,
        ...(known !== undefined && { usual: shownOf(condition, known) }),
        limit: shownOf(condition, limit),
        since: new Date(sinceMs).toISOString(),
        ...(!begins && { onlyGoesOn: true }),
        ...(newAgoMs !== undefined && { newSince: atOf(newAgoMs) }),
        ...(episode && { lastCounted: atOf(Math.max(excess?.lastAgoMs ?? 0, episode.lastAgoMs)) }),
        ...(episode && wasQuiet(episode, from) && { quietSince: atOf(episode.quietAgoMs!) }),
      };
      return [one.shown];
    });
  };

  return {
    sample(rows, { nowMs, monotonicMs }) {
      tracks.begin(monotonicMs);
      sampledMs = monotonicMs;
      seen = collect(rows, tracks, seen, origins);
      for (const source of tracks.keys(countedTrack))
        if (tracks.increase(countedTrack, source, rateMs) > 0)
          counted.set(source, new Date(nowMs - tracks.unchangedMs(countedTrack, source)!).toISOString());
      const next = new Map<string, Held>();
      const exceeded = conditions.flatMap((condition, place) => judge(condition, place, nowMs, next));
      held = next;
      report = {
        exceeded,
        telemetryTruth: truthOf(tracks),
        counted: Object.fromEntries(counted),
        versions: versionsIn(rows),
      };
    },
    report: () => report,
  };
}

/** The version of each role whose page has it. */
function versionsIn(rows: Rows): Record<string, string> {
  const versions: Record<string, string> = {};
  for (const { service, labels } of rows('build_information')) {
    const version = labels.build_version ?? labels.version ?? labels.revision;
    if (version) versions[service] = version.slice(0, 80);
  }
  return versions;
}
