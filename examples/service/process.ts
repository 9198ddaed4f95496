import type { Role } from '../../src/core/catalog.ts';
import { createEntries, type Entry } from './entries.ts';
import type { Conditions } from './incidents.ts';
import { createMetrics, type Family } from './metrics.ts';
import type { MetricNames } from './options.ts';
import { createProductMetrics } from './product-names.ts';
import type { Random } from './random.ts';
import { createRuntime } from './runtime.ts';
import { workOf } from './work.ts';

/** One life of one role: it begins with its counters at 0 and ends with them. */
export interface RoleProcess {
  /** Lives on until `nowMs` and returns what it logged on the way; the first time with its start-up lines. */
  advance(nowMs: number, conditions: Conditions): Entry[];
  /** Its last words: of a planned stop, or of a fatal error. */
  lastWords(nowMs: number, fatal: boolean): Entry;
  families(): Family[];
}

interface RoleProcessOptions {
  role: Role;
  /** Everyday log entries a second, and workflows a second in the service as a whole. */
  ratePerSecond: number;
  /** Default: those of the catalog. */
  names?: MetricNames;
  startMs: number;
}

export function createRoleProcess(
  { role, ratePerSecond, names, startMs }: RoleProcessOptions,
  random: Random,
): RoleProcess {
  const metrics = names === 'cadence' ? createProductMetrics(role) : createMetrics(role);
  const entries = createEntries(role, random);
  const work = [createRuntime(metrics, random), ...workOf(role, metrics, random)];
  let lastMs = startMs;
  let nextEntryMs = startMs;
  let startUp = entries.starting(startMs);

  function everyday(untilMs: number): Entry[] {
    const logged: Entry[] = [];
    for (; nextEntryMs < untilMs; nextEntryMs += 1000 / ratePerSecond)
      logged.push(entries.everyday(nextEntryMs));
    return logged;
  }

  return {
    advance: (nowMs, conditions) => {
      const seconds = Math.max(0, nowMs - lastMs) / 1000;
      lastMs = Math.max(lastMs, nowMs);
      const step = { seconds, workflows: seconds * ratePerSecond, conditions };
      const failed = work.flatMap((part) => part(step));
      const logged = [
        ...startUp,
        ...everyday(nowMs),
        ...failed.map((operation) => entries.persistenceError(nowMs, operation)),
      ];
      startUp = [];
      return logged;
    },
    lastWords: (nowMs, fatal) => (fatal ? entries.fatal(nowMs) : entries.stopping(nowMs)),
    families: metrics.families,
  };
}
