import { errorText, systemCode } from '../../../core/errors.ts';
import type { Log, LogLevel } from '../../../core/ports.ts';

/** What stands in the way of a file, each said once until it is over. */
export interface Troubles {
  tell(path: string, what: string, thrown?: unknown, level?: LogLevel): void;
  over(path: string): void;
  /** What stands in the way of a file now. */
  of(path: string): string | undefined;
}

/** Paths whose trouble is remembered; beyond them a trouble may be told again. */
const pathsLimit = 10_000;

export function createTroubles(log: Log): Troubles {
  const told = new Map<string, string>();
  return {
    tell(path, what, thrown, level = 'warn') {
      const trouble = thrown === undefined ? what : `${what}: ${systemCode(thrown) ?? errorText(thrown)}`;
      if (told.get(path) === trouble) return;
      if (told.size >= pathsLimit) told.clear();
      told.set(path, trouble);
      log.write(level, what, thrown === undefined ? { path } : { path, error: errorText(thrown) });
    },
    of: (path) => told.get(path),
    over: (path) => void told.delete(path),
  };
}
