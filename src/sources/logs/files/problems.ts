import { errorText, systemCode } from '../../../core/errors.ts';
import type { Log, LogLevel } from '../../../core/ports.ts';

/** What prevents a path from being read. Each problem of a path is logged once until it changes. */
export interface Problems {
  report(path: string, what: string, thrown?: unknown, level?: LogLevel): void;
  resolve(path: string, what?: string): void;
  /** The newest unresolved problem of a path. */
  of(path: string): string | undefined;
}

/** Paths with a remembered problem; beyond them a problem may be logged again. */
const pathsLimit = 10_000;

export function createProblems(log: Log): Problems {
  const known = new Map<string, Map<string, string>>();
  return {
    report(path, what, thrown, level = 'warn') {
      const text = thrown === undefined ? what : `${what}: ${systemCode(thrown) ?? errorText(thrown)}`;
      if (known.size >= pathsLimit && !known.has(path)) known.clear();
      const problems = known.get(path) ?? new Map<string, string>();
      known.set(path, problems);
      if (problems.get(what) === text) return;
      problems.delete(what);
      problems.set(what, text);
      log.write(level, what, thrown === undefined ? { path } : { path, error: errorText(thrown) });
    },
    resolve(path, what) {
      if (what === undefined) known.delete(path);
      else known.get(path)?.delete(what);
    },
    of: (path) => [...(known.get(path)?.values() ?? [])].at(-1),
  };
}
