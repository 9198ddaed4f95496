import { type FSWatcher, readFileSync, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { AgentError, errorText, faultLine, systemCode } from '../core/errors.ts';
import type { Clock, Log } from '../core/ports.ts';
import { digestOf, unreadDigest } from './config/environment.ts';
import type { Loaded, ReadyConfig } from './config/types.ts';
import type { SelfMetrics } from './self-metrics.ts';
import { tracing } from './tracing.ts';

/** A part of another configuration, built beside the one that is running. */
export interface Prepared {
  /** Replaces the running part. Does not throw. */
  swap(): Promise<void> | void;
  /** Releases what was built if it is not swapped in. Does not throw. */
  discard(): Promise<void> | void;
}

/** Builds one part of a configuration. Throws, with nothing changed and nothing left open, if it cannot be built. */
export type Prepare = () => Promise<Prepared | undefined>;

/**
 * The first step of a reload: builds every part, in order. If a part cannot be built, the parts before it are discarded in
 * reverse order and its error is thrown: nothing has changed.
 */
export async function prepareAll(parts: readonly Prepare[]): Promise<Prepared[]> {
  const prepared: Prepared[] = [];
  try {
    for (const prepare of parts) {
      const part = await prepare();
      if (part) prepared.push(part);
    }
    return prepared;
  } catch (thrown) {
    for (const part of prepared.reverse()) await part.discard();
    throw thrown;
  }
}

export interface ReloadsDeps {
  /** Reads the configuration again; throws if it cannot be read. */
  load(): Promise<Loaded>;
  /** Called with every configuration that was read, including refused ones, because they name the files to watch. */
  loaded(loaded: Loaded): void;
  /** Builds all parts of the configuration. If it throws, nothing has changed. */
  prepare(config: ReadyConfig): Promise<Prepared[]>;
  self: SelfMetrics;
  clock: Clock;
  log: Log;
}

/** Reloads of the configuration, one at a time, in the order of the requests. */
export interface Reloads {
  /**
   * Reads the configuration again. An invalid configuration is logged, is visible in the agent's metrics, and changes nothing.
   */
  ask(): void;
  /** Prevents further reloads. Resolves when a running swap has ended; a configuration that is being read is discarded. */
  stop(): Promise<void>;
  /** Why the newest configuration was refused; undefined if it is the running configuration. */
  readonly error: string | undefined;
}

/** How many faults of a file the log shows in one line; `svc-agent check` shows the rest. */
const shownFaults = 5;

function faultsOf(faults: Loaded['faults']): AgentError {
  const lines = faults.slice(0, shownFaults).map(faultLine);
  const more = faults.length > shownFaults ? [`and ${faults.length - shownFaults} more`] : [];
  return new AgentError('config_invalid', { where: 'configuration', what: [...lines, ...more].join(' | ') });
}

export function createReloads({ load, loaded, prepare, self, clock, log }: ReloadsDeps): Reloads {
  let error: string | undefined;
  let isStopped = false;
  /** Whether a reload waits. It reads the files when it starts. */
  let isAsked = false;
  let last = Promise.resolve();
  /** The part of a running reload that a stop has to wait for. */
  let building = Promise.resolve();

  const succeeded = () => {
    error = undefined;
    self.reloadSuccessful.set(1);
    self.reloadSuccessTimestamp.set(clock.nowMs() / 1e3);
  };
  const failed = (thrown: unknown) => {
    error = errorText(thrown);
    self.reloadSuccessful.set(0);
  };
  /**
   * Swaps all parts. A swap must not throw. If a swap throws nevertheless, the others are still swapped, so that nothing is left
   * open.
   */
  const swapAll = async (prepared: readonly Prepared[]) => {
    for (const part of prepared) {
      try {
        await part.swap();
      } catch (thrown) {
        failed(thrown);
        log.write('error', 'a part of the new configuration failed to start', { error: thrown });
      }
    }
  };
  const build = async (config: ReadyConfig): Promise<void> => {
    const prepared = await prepare(config);
    if (isStopped) for (const part of prepared.reverse()) await part.discard();
    else {
      succeeded();
      await swapAll(prepared);
    }
  };
  const readAgain = async (): Promise<void> => {
    const read = await load();
    if (isStopped) return;
    loaded(read);
    const { config, faults } = read;
    if (!config || faults.length > 0) throw faultsOf(faults);
    const built = build({ ...read, config });
    building = built.catch(() => {});
    await built;
  };
  const reload = async (): Promise<void> => {
    isAsked = false;
    if (isStopped) return;
    try {
      await tracing.span('reload', {}, readAgain);
      if (!isStopped) log.write('info', 'configuration reloaded');
    } catch (thrown) {
      if (isStopped) return;
      failed(thrown);
      log.write('error', 'configuration refused; the previous one stays in use', { error: thrown });
    }
  };
  succeeded();
  return {
    ask() {
      if (isAsked) return;
      isAsked = true;
      last = last.then(reload);
    },
    async stop() {
      isStopped = true;
      await building;
    },
    get error() {
      return error;
    },
  };
}

/**
 * The interval of comparisons without an event. Network mounts send no events, and a directory that is removed and created again,
 * or a link above the file that gets another target, may send none that reach a watch.
 */
const compareIntervalMs = 10_000;
/** A rename and a replaced link send several events; one comparison after the last is enough. */
const settleMs = 100;

/**
 * The digest of a file's content; undefined if the process has no descriptor left to read it with, which says nothing about the
 * file.
 */
function contentOf(file: string): string | undefined {
  try {
    // A pipe would never be read to its end.
    return statSync(file).isFile() ? digestOf(readFileSync(file)) : unreadDigest;
  } catch (thrown) {
    const code = systemCode(thrown);
    return code === 'EMFILE' || code === 'ENFILE' ? undefined : unreadDigest;
  }
}

/**
 * Compares the files with their known contents. It always reads the few files: two changes of the same size in one tick of the
 * file system's clock, with a comparison between them, leave the same times.
 */
function createComparison(files: Readonly<Record<string, string | undefined>>) {
  const known = new Map(Object.entries(files).map(([file, digest]) => [file, digest ?? contentOf(file)]));
  return (): boolean => {
    let isChanged = false;
    for (const [file, before] of known) {
      const digest = contentOf(file) ?? before;
      isChanged ||= digest !== before;
      known.set(file, digest);
    }
    return isChanged;
  };
}

/**
 * Calls back on any event of one of the files, or of a link of a mounted volume in their directories. The returned function ends
 * the watch. An event of another file costs a comparison of names: a log beside the configuration may be written a thousand times
 * a second.
 */
function watchEvents(files: readonly string[], onEvent: () => void): () => void {
  const names = new Set(files.map((file) => basename(file)));
  const ring = (_: string, name: string | null) => {
    if (name === null || names.has(name) || name.startsWith('..data')) onEvent();
  };
  const begin = (directory: string): FSWatcher[] => {
    try {
      return [watch(directory, { persistent: false }, ring).on('error', () => {})];
    } catch {
      // The comparison covers what cannot be watched.
      return [];
    }
  };
  const watches = [...new Set(files.map(dirname))].flatMap(begin);
  return () => {
    for (const one of watches) one.close();
  };
}

/**
 * Calls `changed` when the content behind any of the files differs from what was loaded: edited in place, renamed over, or
 * reached through a link that got another target (a mounted ConfigMap's `..data`). Events trigger comparisons; a further
 * comparison at an interval finds what sends no event.
 */
export function watchConfiguration(
  files: Readonly<Record<string, string | undefined>>,
  clock: Clock,
  changed: () => void,
): () => void {
  const isChanged = createComparison(files);
  const compare = () => {
    if (isChanged()) changed();
  };
  let cancelSettle = () => {};
  const onEvent = () => {
    cancelSettle();
    cancelSettle = clock.after(settleMs, compare);
  };
  let cancelNext = () => {};
  const compareNext = (afterMs: number) => {
    cancelNext = clock.after(afterMs, () => {
      // This comes first, because `changed` may end this watch.
      compareNext(compareIntervalMs);
      compare();
    });
  };
  // The first comparison is soon: a file may have changed between its loading and this watch.
  compareNext(settleMs);
  const endEvents = watchEvents(Object.keys(files), onEvent);
  return () => {
    cancelSettle();
    cancelNext();
    endEvents();
  };
}
