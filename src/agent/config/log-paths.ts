import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { createDiscovery } from '../../sources/logs/discovery/discovery.ts';
import { systemDisk } from '../../sources/logs/discovery/disk.ts';
import { compilePatterns, type Glob } from '../../sources/logs/discovery/patterns.ts';
import { unreadableFile } from './environment.ts';
import { type MapNode, placedFault, placeOf, type TreePath } from './tree.ts';
import type { AgentConfig, PlacedFault } from './types.ts';

/** What one path pattern matches now, for all services that have it with the same `exclude`. */
interface SurveyedPattern {
  pattern: string;
  services: readonly string[];
  /** The place of the pattern in the first of these services. */
  path: TreePath;
  /** Files that are read if the agent's user can read them. */
  files: readonly string[];
  /** The files among them that the user cannot read. */
  denied: readonly string[];
  /** Compressed files that the pattern matches and that are not read. */
  compressed: readonly string[];
  /** Directories that the pattern matches. */
  directories: readonly string[];
  /** Directories of the pattern that the user cannot list. */
  unlisted: readonly string[];
  /** The first directory of the pattern that is missing. */
  missing?: string;
  /** Whether its directories have more entries than a check reads; the rest is then unknown. */
  isTooWide: boolean;
}

/** How many directory entries are read for one pattern. */
const mostEntries = 40_000;
const tooMany = new Error('too many entries');

const unknown = { files: [], denied: [], compressed: [], directories: [], unlisted: [] } as const;

/** Looks up every path pattern of the watched services in the same way as the log source. */
export async function surveyLogPaths({ services }: AgentConfig, cwd: string): Promise<SurveyedPattern[]> {
  const found = new Map<string, Promise<SurveyedPattern>>();
  const sharing = new Map<string, string[]>();
  for (const { name, selected, logs } of services) {
    if (!selected || !logs) continue;
    for (const [index, pattern] of logs.paths.entries()) {
      if (pattern === '-') continue;
      const key = JSON.stringify([pattern, logs.exclude]);
      sharing.set(key, [...(sharing.get(key) ?? []), name]);
      if (found.has(key)) continue;
      const path = ['services', name, 'logs', 'paths', index];
      const [one] = compilePatterns({ [name]: { ...logs, paths: [pattern] } }, new Set([name]), cwd).watched;
      const looked = lookUp(one!).catch((thrown: unknown) => {
        if (thrown === tooMany) return { ...unknown, isTooWide: true };
        throw thrown;
      });
      found.set(
        key,
        looked.then((matches) => ({ pattern, services: sharing.get(key)!, path, ...matches })),
      );
    }
  }
  return Promise.all(found.values());
}

type Compiled = ReturnType<typeof compilePatterns>['watched'][number];

async function lookUp(pattern: Compiled): Promise<Omit<SurveyedPattern, 'pattern' | 'services' | 'path'>> {
  let entries = 0;
  const counting = {
    ...systemDisk,
    list(directory: string) {
      const listed = systemDisk.list(directory);
      entries += listed.length;
      return listed;
    },
  };
  const unlistable = new Set<string>();
  const discovery = createDiscovery({
    disk: counting,
    slices: {
      spent: () => entries > mostEntries,
      turn: () => Promise.reject(tooMany),
    },
    problems: {
      report: (path) => void unlistable.add(path || '/'),
      resolve: () => {},
      of: () => undefined,
    },
  });
  const patterns = {
    watched: [pattern],
    claimants: () => [pattern.service],
    isWatched: () => true,
    areApart: () => false,
    mayBeApart: false,
  };
  const picture = await discovery.scan({
    patterns,
    isRemembered: () => true,
    homes: new Map(),
    targets: new Map(),
  });
  const files = [...picture.found.keys()];
  const directories = [...unlistable].filter((path) => unreadableFile(path) === 'a directory');
  const isMatched = (path: string) => pattern.globs.some((glob) => glob.matches(path));
  return {
    files,
    denied: files.filter((file) => unreadableFile(file) === 'not readable'),
    compressed: picture.passedOver.map(({ path }) => path),
    directories: directories.filter(isMatched),
    unlisted: directories.filter((path) => !isMatched(path)),
    missing: pattern.globs.map(missingDirectory).find((directory) => directory !== undefined),
    isTooWide: false,
  };
}

/** The first directory that a glob spells out and that is missing. */
function missingDirectory({ steps }: Glob): string | undefined {
  let directory = '';
  for (const step of steps.slice(0, -1)) {
    if (typeof step !== 'string') return undefined;
    directory += `/${step}`;
    if (!existsSync(directory)) return directory;
  }
  return undefined;
}

/** A finding about a pattern: a fault or a warning. */
interface PatternFinding {
  isFault: boolean;
  what: string;
  allowed: string;
}

/** The findings about what a pattern matches. */
export function checkPattern(surveyed: SurveyedPattern): PatternFinding[] {
  const { pattern, services, files, denied, compressed, directories, unlisted, missing, isTooWide } =
    surveyed;
  const also = services.length > 1 ? ` (the same for ${services.slice(1).join(', ')})` : '';
  const several = (paths: readonly string[]) =>
    paths.length === 1 ? paths[0] : `${paths[0]} and ${paths.length - 1} more`;
  const found: PatternFinding[] = [];
  const report = (isFault: boolean, what: string, allowed: string) =>
    found.push({ isFault, what: what + also, allowed });
  if (isTooWide) {
    const what = `its directories have more than ${mostEntries} entries, which every scan lists`;
    report(false, what, 'name the directory that the logs are in');
  } else if (files.length + compressed.length === 0) {
    if (directories.length > 0) {
      report(true, 'a directory', `name the files in it, such as ${pattern.replace(/\/$/, '')}/*.log`);
    } else if (unlisted.length > 0) {
      const allowed = 'add the user to the group of the directory, or set an ACL';
      report(true, `the agent’s user cannot list ${several(unlisted)}`, allowed);
    } else {
      const why = missing ? `, because ${missing} is missing` : '';
      const allowed = pattern.startsWith('~')
        ? 'write the path of the home directory instead of ~, which stands for itself'
        : 'name the path that the role writes its log to';
      report(false, `matches no file yet${why}`, allowed);
    }
  } else if (denied.length > 0) {
    const allowed = 'add the user to the group of the file, or set an ACL';
    report(true, `the agent’s user cannot read ${several(denied)}`, allowed);
  }
  if (compressed.length > 0) {
    const what = compressed.length === 1 ? 'a compressed file' : `${compressed.length} compressed files`;
    const allowed = 'end the pattern with .gz to read gzip files';
    report(
      false,
      `matches ${what}, which the agent does not read, such as ${basename(compressed[0]!)}`,
      allowed,
    );
  }
  return found;
}

/**
 * Findings for path patterns of the watched services that match nothing, a directory, or files that the agent's user cannot read.
 */
export async function checkLogPaths(
  config: AgentConfig,
  tree: MapNode,
  cwd: string,
): Promise<{ findings: PlacedFault[]; warnings: PlacedFault[] }> {
  const findings: PlacedFault[] = [];
  const warnings: PlacedFault[] = [];
  for (const surveyed of await surveyLogPaths(config, cwd)) {
    const { path, pattern } = surveyed;
    for (const { isFault, what, allowed } of checkPattern(surveyed)) {
      const fault = placedFault(placeOf(tree, path), path, `${what}; ${allowed}`, pattern);
      (isFault ? findings : warnings).push(fault);
    }
  }
  return { findings, warnings };
}
