import { resolve } from 'node:path';
import type { LogsOptions } from '../options.ts';
import { type Glob, parseExclude, parseGlob } from './glob.ts';

/** One path pattern of one service. */
export interface Claim {
  readonly service: string;
  /** The pattern from the root; what the state remembers. */
  readonly pattern: string;
  readonly globs: readonly Glob[];
  readonly startAt: 'end' | 'beginning';
  readonly selected: boolean;
  excludes(path: string): boolean;
}

/** Which services claim which paths. */
export interface Claims {
  /** Patterns of the selected services, in the configuration's order. */
  readonly watched: readonly Claim[];
  /** Services whose patterns lead to any of a file's names, in the configuration's order, selected or not. */
  claimants(paths: readonly string[]): readonly string[];
  isWatched(path: string): boolean;
}

const neverExcluded = () => false;

function claimsOf(service: string, options: LogsOptions, selected: boolean): Claim[] {
  const excludes = options.exclude.map((pattern) => parseExclude(pattern));
  return options.paths
    .filter((pattern) => pattern !== '-')
    .map((pattern) => ({
      service,
      pattern: resolve(pattern),
      globs: parseGlob(pattern),
      startAt: options.startAt,
      selected,
      excludes: excludes.length === 0 ? neverExcluded : (path) => excludes.some((excluded) => excluded(path)),
    }));
}

/** Puts the services' patterns together; `-` (standard input) is no pattern. */
export function createClaims(
  services: Readonly<Record<string, LogsOptions>>,
  selected: ReadonlySet<string>,
): Claims {
  const all = Object.entries(services).flatMap(([service, options]) =>
    claimsOf(service, options, selected.has(service)),
  );
  const takes = (claim: Claim, path: string) =>
    claim.globs.some((glob) => glob.matches(path)) && !claim.excludes(path);
  return {
    watched: all.filter(({ selected }) => selected),
    claimants: (paths) => [
      ...new Set(
        all.filter((claim) => paths.some((path) => takes(claim, path))).map(({ service }) => service),
      ),
    ],
    isWatched: (path) => all.some((claim) => claim.selected && takes(claim, path)),
  };
}
