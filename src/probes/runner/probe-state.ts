import { AgentError } from '../../core/errors.ts';
import type { Durable, Log } from '../../core/ports.ts';
import type { ProbeFailureReason, ProbeKind, ProbeSkipReason, ProbeState } from '../../core/reasons.ts';
import type { ProbeRow, Progress } from '../probe.ts';
import type { Outcome } from './probe-run.ts';

/** The damped state, which does not change with every single run. */
interface Damping {
  /** The state; undefined until enough runs in a row agree. */
  readonly state: ProbeState | undefined;
  readonly consecutiveFailures: number;
  /** Adds one run; returns the new state if it changed. */
  take(ok: boolean): ProbeState | undefined;
}

interface DampingOptions {
  /** How many failures in a row change the state to down, and how many successes in a row change it to up. */
  failureThreshold?: number;
  successThreshold?: number;
}

export function createDamping({ failureThreshold = 1, successThreshold = 1 }: DampingOptions): Damping {
  let state: ProbeState | undefined;
  let failures = 0;
  let successes = 0;
  return {
    get state() {
      return state;
    },
    get consecutiveFailures() {
      return failures;
    },
    take(ok) {
      failures = ok ? 0 : failures + 1;
      successes = ok ? successes + 1 : 0;
      const [to, isDue] = ok
        ? (['up', successes >= successThreshold] as const)
        : (['down', failures >= failureThreshold] as const);
      if (!isDue || state === to) return undefined;
      state = to;
      return to;
    },
  };
}

/**
 * The number of runs that are considered. The thresholds are those of common monitoring systems: flapping starts at 30 % changes
 * and ends at 10 %.
 */
const runs = 21;
const beginsAt = 6;
const endsAt = 2;

/** Detects flapping. Counts runs, so that it does not depend on a clock. */
interface Flapping {
  readonly isFlapping: boolean;
  /** Adds one run, undamped; returns whether it began or ended flapping. */
  take(ok: boolean): 'began' | 'ended' | undefined;
}

/** Creates the detection, which starts with 6 changes among the last 21 runs, and ends at 2 or fewer. */
export function createFlapping(): Flapping {
  const changes: boolean[] = [];
  let last: boolean | undefined;
  let isFlapping = false;
  return {
    get isFlapping() {
      return isFlapping;
    },
    take(ok) {
      if (last !== undefined) changes.push(ok !== last);
      if (changes.length > runs - 1) changes.shift();
      last = ok;
      const count = changes.filter(Boolean).length;
      const next = isFlapping ? count > endsAt : count >= beginsAt;
      if (next === isFlapping) return undefined;
      isFlapping = next;
      return next ? 'began' : 'ended';
    },
  };
}

/** The result of one run, for people and listeners. */
export interface ProbeResult {
  /** Wall clock, ms. */
  atMs: number;
  ok: boolean;
  reason?: ProbeFailureReason;
  msg: string;
  durationMs: number;
  phasesMs?: Readonly<Record<string, number>>;
  /** Checks that failed although the probe itself succeeded. */
  failedChecks?: readonly string[];
  details?: Readonly<Record<string, unknown>>;
}

/** The state of a probe, for `/probes`. Times are wall clock, ms. */
export interface ProbeReport {
  name: string;
  kind: ProbeKind;
  target: string;
  /** The damped state; undefined until enough runs in a row agree. */
  state: ProbeState | undefined;
  /** When the state last changed. */
  sinceMs: number | undefined;
  flapping: boolean;
  intervalMs: number;
  timeoutMs: number;
  nextRunMs: number;
  isRunning: boolean;
  /** The progress of work between runs, such as the verification of a big backup. */
  progress?: Progress;
  last: ProbeResult | undefined;
  /** The age of the last result, measured by the time that has passed, whatever the wall clock did; absent without a result. */
  ageMs?: number;
  consecutiveFailures: number;
  /** When the first of these failures was; undefined if there is none. */
  failingSinceMs: number | undefined;
  skipped: Readonly<Record<ProbeSkipReason, number>>;
  /** The last results and the last failed results, oldest first. */
  history: readonly ProbeResult[];
  failures: readonly ProbeResult[];
}

/** Called with each result; must not throw. */
export type OnResult = (row: ProbeRow, result: ProbeResult) => void;

export function resultOf({ finding, durationMs }: Outcome, atMs: number): ProbeResult {
  const { reason, msg, phasesMs, failedChecks, details } = finding;
  return { atMs, ok: reason === undefined, reason, msg, durationMs, phasesMs, failedChecks, details };
}

/** The last entries of a sequence, oldest first. */
interface Ring<T> {
  push(one: T): void;
  all(): readonly T[];
}

function createRing<T>(size: number): Ring<T> {
  let kept: T[] = [];
  /** What `all` returned last. It is asked more often than entries come. */
  let last: readonly T[] | undefined;
  return {
    push(one) {
      kept.push(one);
      if (kept.length > size * 2) kept = kept.slice(-size);
      last = undefined;
    },
    all() {
      last ??= size > 0 ? kept.slice(-size) : [];
      return last;
    },
  };
}

export interface ResultHistoryOptions {
  /** How many results and how many failed results are stored per probe. Default 100 and 20. */
  history?: number;
  failures?: number;
}

/** The state and history of one probe. Logs changes of the state, not single results. */
interface ProbeTracker {
  /** Adds one result. Returns the new state if there was another state before. */
  take(result: ProbeResult): ProbeState | undefined;
  report(): Pick<
    ProbeReport,
    | 'state'
    | 'sinceMs'
    | 'flapping'
    | 'last'
    | 'consecutiveFailures'
    | 'failingSinceMs'
    | 'history'
    | 'failures'
  >;
}

export function createProbeTracker(
  { name, kind, target, schedule }: ProbeRow,
  { history = 100, failures = 20 }: ResultHistoryOptions,
  log: Log,
): ProbeTracker {
  const damping = createDamping(schedule);
  const flapping = createFlapping();
  const results = createRing<ProbeResult>(history);
  const failed = createRing<ProbeResult>(failures);
  let last: ProbeResult | undefined;
  let sinceMs: number | undefined;
  let failingSinceMs: number | undefined;
  const probe = { probe: name, kind, target };

  const noteState = (to: ProbeState, before: ProbeState | undefined, { reason, msg }: ProbeResult) => {
    const fields = { ...probe, reason, found: msg };
    if (to === 'down') log.write('warn', 'the target of a probe is down', fields);
    else if (before) log.write('info', 'the target of a probe is up again', fields);
  };
  const noteFlapping = (change: ReturnType<typeof flapping.take>) => {
    if (change === 'began') log.write('warn', 'the target of a probe is flapping', probe);
    if (change === 'ended') log.write('info', 'the target of a probe is no longer flapping', probe);
  };

  return {
    take(result) {
      const before = damping.state;
      const to = damping.take(result.ok);
      last = result;
      results.push(result);
      if (!result.ok) failed.push(result);
      failingSinceMs = result.ok ? undefined : (failingSinceMs ?? result.atMs);
      noteFlapping(flapping.take(result.ok));
      if (!to) return undefined;
      sinceMs = result.atMs;
      noteState(to, before, result);
      return before && to;
    },
    report: () => ({
      state: damping.state,
      sinceMs,
      flapping: flapping.isFlapping,
      last,
      consecutiveFailures: damping.consecutiveFailures,
      failingSinceMs,
      history: results.all(),
      failures: failed.all(),
    }),
  };
}

/** What probes remember between runs and across restarts, by probe name. */
export interface Memories extends Durable {
  /** A copy of what a probe remembers; undefined if there is nothing. */
  recall(name: string): unknown;
  /** Stores what a probe remembers. `json` is JSON text. */
  keep(name: string, json: string): void;
  /** Sets the probes in use. What other probes remember is stored up to a limit, in case they return. */
  use(names: ReadonlySet<string>): void;
}

const version = 1;

function unreadable(what: string, cause?: unknown): AgentError {
  return new AgentError('state_unreadable', { where: 'state section probes', what }, cause);
}

/** Decodes `{"version": 1, "memories": [[name, memory], …]}`. Throws `state_unreadable` on anything else. */
function decode(section: Uint8Array): [name: string, json: string][] {
  let content: { version?: unknown; memories?: unknown } | null;
  try {
    content = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(section));
  } catch (thrown) {
    throw unreadable('not JSON', thrown);
  }
  if (content?.version !== version) throw unreadable('unknown version');
  if (!Array.isArray(content.memories)) throw unreadable('no memories');
  return content.memories.map((memory: unknown) => {
    if (!Array.isArray(memory) || memory.length !== 2 || typeof memory[0] !== 'string') {
      throw unreadable('a memory without a name');
    }
    return [memory[0], JSON.stringify(memory[1])];
  });
}

export function createMemories({ maxUnused = 1000 }: { maxUnused?: number } = {}): Memories {
  /** JSON texts by probe name, oldest first. */
  const texts = new Map<string, string>();
  let used: ReadonlySet<string> = new Set();
  let frozen: Uint8Array | undefined;

  const put = (name: string, json: string) => {
    texts.delete(name);
    texts.set(name, json);
    frozen = undefined;
  };
  return {
    name: 'probes',
    recall(name) {
      const json = texts.get(name);
      return json === undefined ? undefined : JSON.parse(json);
    },
    keep(name, json) {
      if (texts.get(name) !== json) put(name, json);
    },
    use(names) {
      used = names;
      const unused = [...texts.keys()].filter((name) => !used.has(name));
      for (const name of unused.slice(0, Math.max(0, unused.length - maxUnused))) texts.delete(name);
      frozen = undefined;
    },
    freeze() {
      if (!frozen) {
        const memories = [...texts].map(([name, json]) => `[${JSON.stringify(name)},${json}]`);
        frozen = new TextEncoder().encode(`{"version":${version},"memories":[${memories.join(',')}]}`);
      }
      return frozen;
    },
    restore(section) {
      for (const [name, json] of decode(section)) put(name, json);
    },
  };
}
