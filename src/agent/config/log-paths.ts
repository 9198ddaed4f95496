import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { anyDepth, parseExclude, parseGlob, type Step } from '../../sources/logs/files/patterns.ts';
import { isCompressed, isGzip } from '../../sources/logs/files/rotated-names.ts';
import { unreadableFile } from './environment.ts';
import { type MapNode, placedFault, placeOf } from './tree.ts';
import type { AgentConfig, PlacedFault } from './types.ts';

/** Directory entries to read for one pattern. A pattern over a whole disk is not checked. */
const mostEntries = 20_000;

interface Matches {
  /** Paths that the pattern matches now; undefined if there are too many entries to check. */
  paths: readonly string[] | undefined;
  /** The first directory of the pattern that is missing. */
  missing?: string;
}

/** Paths that a pattern matches now, directories included. */
export function matchesOf(pattern: string, cwd: string): Matches {
  const paths = new Set<string>();
  let missing: string | undefined;
  let left = mostEntries;
  const walk = (path: string, steps: readonly Step[]): void => {
    const [step, ...rest] = steps;
    const there = statSync(path, { throwIfNoEntry: false });
    if (step === undefined) {
      if (there) paths.add(path);
      return;
    }
    if (!there?.isDirectory()) {
      if (!there) missing ??= path;
      return;
    }
    if (typeof step === 'string') {
      walk(join(path, step), rest);
      return;
    }
    if (step === anyDepth) walk(path, rest);
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (--left < 0) return;
      if (step === anyDepth) entry.isDirectory() && walk(join(path, entry.name), steps);
      else if (step(entry.name)) walk(join(path, entry.name), rest);
    }
  };
  for (const { steps } of parseGlob(pattern, cwd)) {
    try {
      walk('/', steps);
    } catch {
      // A directory that cannot be listed; the agent says so when it runs.
      left = -1;
    }
  }
  return left < 0 ? { paths: undefined } : { paths: [...paths], ...(missing && { missing }) };
}

/** Path patterns of the watched services that match nothing, a directory, or what the agent's user cannot read. */
export function checkLogPaths(
  { services }: AgentConfig,
  tree: MapNode,
  cwd: string,
): { findings: PlacedFault[]; warnings: PlacedFault[] } {
  const findings: PlacedFault[] = [];
  const warnings: PlacedFault[] = [];
  for (const { name, selected, logs } of services) {
    if (!selected || !logs) continue;
    const excludes = logs.exclude.map((pattern) => parseExclude(pattern, cwd));
    for (const [index, pattern] of logs.paths.entries()) {
      if (pattern === '-') continue;
      const path = ['services', name, 'logs', 'paths', index];
      const say = (to: PlacedFault[], message: string) =>
        to.push(placedFault(placeOf(tree, path), path, message, pattern));
      const { paths: matched, missing } = matchesOf(pattern, cwd);
      if (!matched) continue;
      const paths = matched.filter((file) => !excludes.some((excludes) => excludes(file)));
      const files = paths.filter((file) => unreadableFile(file) !== 'a directory');
      const denied = files.filter((file) => unreadableFile(file) === 'not readable');
      if (paths.length === 0) {
        const why = missing ? `matches no file yet, because ${missing} is missing` : 'matches no file yet';
        say(warnings, `${why}; name the path that the role writes its log to`);
      } else if (files.length === 0) {
        say(findings, `a directory; name the files in it, such as ${pattern.replace(/\/$/, '')}/*.log`);
      } else if (denied.length > 0) {
        const what = denied.length === 1 ? denied[0] : `${denied[0]} and ${denied.length - 1} more`;
        say(findings, `the agent’s user cannot read ${what}; add it to the group of the file, or set an ACL`);
      }
      const namesGzip = parseGlob(pattern, cwd).some((glob) => glob.namesGzip);
      const unread = files.filter((file) => isCompressed(file) && !(namesGzip && isGzip(file)));
      if (unread.length > 0) {
        const what = unread.length === 1 ? 'a compressed file' : `${unread.length} compressed files`;
        say(
          warnings,
          `matches ${what}, which the agent does not read, such as ${basename(unread[0]!)}; end the pattern in .gz to read gzip files`,
        );
      }
    }
  }
  return { findings, warnings };
}
