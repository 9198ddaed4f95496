import nodeFs from 'node:fs/promises';
import { AgentError } from '../../core/errors.ts';
import type { Clock, Durable, Log } from '../../core/ports.ts';
import type { DegradedReason } from '../../core/reasons.ts';
import type { DurableValues, Frozen } from '../../core/registry/durable-store.ts';
import { isLocked } from './lock.ts';
import type { SnapshotContent } from './snapshot.ts';
import {
  type CommitOutcomes,
  type CommitStatus,
  createCommitOutcomes,
  createStateDirectory,
  createWriter,
  type StateDirectory,
  type StateFs,
  StepFailure,
  type StoredSnapshot,
  type UnreadFile,
} from './snapshot-files.ts';

interface SharedRuns<T> {
  /** Joins the next run that is still open, or requests one. */
  join(): Promise<T>;
  /** Resolves when no run is under way or waiting. Never rejects. */
  idle(): Promise<void>;
}

/**
 * Runs `run` one at a time. Callers share a run until it calls `shut`; later callers share the next run. At most one call runs
 * and one waits.
 */
export function createSharedRuns<T>(run: (shut: () => void) => Promise<T>): SharedRuns<T> {
  let open: Promise<T> | undefined;
  let last: Promise<void> = Promise.resolve();

  const start = (): Promise<T> => {
    const shut = () => {
      if (open === next) open = undefined;
    };
    const next = last.then(() => run(shut));
    last = next.then(shut, shut);
    open = next;
    return next;
  };
  return { join: () => open ?? start(), idle: () => last };
}

/** A section of the snapshot whose owner opens after the snapshot was read and may change with a reload. */
export interface StateSection {
  /**
   * Restores the section into its owner. From now on the owner freezes the section. During the start, throws `state_unreadable`
   * if the owner cannot read the section; later, the owner then begins with nothing, which is logged.
   */
  assign(owner: Durable): void;
}

function createSection(name: string, restored: Uint8Array, unreadable: (cause: unknown) => void) {
  let section = restored;
  let owner: Durable | undefined;
  const freeze = () => owner?.freeze() ?? section;
  return {
    name,
    freeze,
    assign(to: Durable) {
      const before = freeze();
      try {
        if (before.length > 0) to.restore(before);
      } catch (cause) {
        unreadable(cause);
      }
      owner = to;
      section = new Uint8Array(0);
    },
  };
}

interface Restored {
  /** The sequence of the snapshot; 0 if the state begins with nothing. */
  readonly sequence: number;
  /** The file that was restored; undefined if the state begins with nothing. */
  readonly file?: string;
  /** Sections without an owner. They stay in the snapshots until their component is configured again. */
  readonly keptSections: ReadonlyMap<string, Uint8Array>;
  /** Snapshots that are newer than the restored one and whose table could not be read. */
  readonly refused: readonly UnreadFile[];
}

/**
 * The error for a section that cannot be read. It ends the start: other sections may have been restored already, and half a state
 * gives wrong numbers.
 */
function sectionUnreadable(file: string, section: string, cause: unknown): AgentError {
  const what = `section ${JSON.stringify(section)} cannot be read; the file is set aside`;
  const allowed = 'start again, from the snapshot before it or from nothing';
  return new AgentError('state_unreadable', { where: file, what, allowed }, cause);
}

/** Whether a start failed because a section of the snapshot cannot be read. */
export const isUnreadable = (thrown: unknown): boolean =>
  thrown instanceof AgentError && thrown.code === 'state_unreadable';

function restoreSections(
  { file, sections }: StoredSnapshot,
  durables: readonly Durable[],
): Map<string, Uint8Array> {
  const rest = new Map(sections);
  for (const durable of durables) {
    const section = rest.get(durable.name);
    if (!section) continue;
    rest.delete(durable.name);
    try {
      durable.restore(section);
    } catch (cause) {
      throw sectionUnreadable(file, durable.name, cause);
    }
  }
  // The sections are copied, because a view would hold the whole file in memory.
  return new Map([...rest].map(([name, bytes]) => [name, bytes.slice()]));
}

/** Restores the newest snapshot whose table `values` can read. Throws `state_unreadable`. */
function restoreNewest(
  snapshots: readonly StoredSnapshot[],
  { values, durables }: { values: DurableValues; durables: readonly Durable[] },
  chosen: (file: string) => void,
): Restored {
  const refused: UnreadFile[] = [];
  for (const snapshot of snapshots) {
    chosen(snapshot.file);
    try {
      values.restore(snapshot.table, snapshot.values);
    } catch (cause) {
      refused.push({ file: snapshot.file, cause });
      continue;
    }
    const { sequence, file } = snapshot;
    return { sequence, file, keptSections: restoreSections(snapshot, durables), refused };
  }
  return { sequence: 0, keptSections: new Map(), refused };
}

interface LoadDeps {
  stateDirectory: StateDirectory;
  outcomes: CommitOutcomes;
  values: DurableValues;
  durables: readonly Durable[];
}

async function enter({ stateDirectory, outcomes }: LoadDeps): Promise<readonly StoredSnapshot[]> {
  try {
    return (await stateDirectory.enter()).snapshots;
  } catch (cause) {
    if (isLocked(cause)) throw cause;
    outcomes.degrade('no_directory', cause);
    return (await stateDirectory.read()).snapshots;
  }
}

async function setAside(
  { stateDirectory, outcomes }: LoadDeps,
  unread: readonly UnreadFile[],
): Promise<void> {
  try {
    for (const one of unread) await stateDirectory.setAside(one);
  } catch (cause) {
    outcomes.degrade('no_directory', cause);
    await stateDirectory.leave();
  }
}

/** Locks the directory and restores the state; see `State.load`. Releases the directory if it throws. */
async function loadState(deps: LoadDeps, ignored: ReadonlySet<string>): Promise<Restored> {
  const snapshots = (await enter(deps)).filter(({ file }) => !ignored.has(file));
  let file = '';
  try {
    const restored = restoreNewest(snapshots, deps, (chosen) => (file = chosen));
    await setAside(deps, restored.refused);
    return restored;
  } catch (cause) {
    if (isUnreadable(cause)) await setAside(deps, [{ file, cause }]);
    await deps.stateDirectory.leave();
    throw cause;
  }
}

interface StateOptions {
  directory: string;
  /** Whether file and directory are synced at each commit, so that a power loss does not bring back an older state. */
  fsync: boolean;
  /** Snapshots that an earlier attempt of this start could neither read nor set aside. */
  ignored?: ReadonlySet<string>;
}

interface StateDeps {
  values: DurableValues;
  /** Owners that exist before the snapshot is read; other owners use `section`. */
  durables?: readonly Durable[];
  clock: Clock;
  log: Log;
  fs?: StateFs;
}

interface Committed {
  /**
   * The sequence number of the snapshot with the shown values; while the state is degraded, the number of the last snapshot that
   * could be written.
   */
  readonly sequence: number;
  /** Why the shown values are only in memory; undefined if they are in the snapshot. */
  readonly degraded?: DegradedReason;
}

interface StateStatus extends CommitStatus {
  readonly directory: string;
  readonly sequence: number;
}

/** Commit before expose (docs/guarantees.md): shown values are never ahead of what a restart restores. */
export interface State {
  /**
   * Locks the directory and restores the newest readable snapshot, before anything starts. If the directory cannot be locked or
   * written to, the state is degraded. Throws `state_locked` if another agent has the lock, and `state_unreadable` if a durable
   * cannot read its section: the file is then set aside for the next start.
   */
  load(): Promise<{ sequence: number }>;
  /** The section with this name, with its content from the snapshot. Call it after `load`. */
  section(name: string): StateSection;
  /** Ends the start: from now on, a section that its owner cannot read does not make the whole snapshot unreadable. */
  started(): void;
  /**
   * Sets the restored snapshot aside because the owner of a section could not read it, and releases the directory. Resolves with
   * the file's name.
   */
  refuse(cause: unknown): Promise<string | undefined>;
  /**
   * Freezes the values at some moment after the call, writes, then publishes the freeze. Callers share a commit as long as it has
   * not frozen. If the write fails, it still publishes, and reports the failure. Rejects only when a freeze itself throws, or
   * after `close`.
   */
  commit(): Promise<Committed>;
  status(): StateStatus;
  /** Waits for running commits and releases the directory; it does not commit. */
  close(): Promise<void>;
}

async function failureOf(step: () => Promise<void>): Promise<StepFailure | undefined> {
  try {
    await step();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof StepFailure) return thrown;
    throw thrown;
  }
}

function checkNames(durables: readonly Durable[]): void {
  const names = durables.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new AgentError('internal', { where: 'state', what: 'duplicate section name', got: twice });
}

/** Freezes values and sections in one synchronous step, so that they belong together. */
function freezeAll(
  values: DurableValues,
  durables: Iterable<Pick<Durable, 'name' | 'freeze'>>,
  keptSections: Restored['keptSections'],
): { frozen: Frozen; content: SnapshotContent } {
  const frozen = values.freeze();
  const sections = new Map(keptSections);
  for (const durable of durables) sections.set(durable.name, durable.freeze());
  return { frozen, content: { table: frozen.table, values: frozen.values, sections } };
}

/** Throws `internal` if two durables have the same name. */
export function createState(options: StateOptions, deps: StateDeps): State {
  const { durables = [], values, clock } = deps;
  checkNames(durables);
  const log = deps.log.named('state');
  const stateDirectory = createStateDirectory(options, { fs: deps.fs ?? nodeFs, clock, log });
  const outcomes = createCommitOutcomes(options.directory, { log, clock });
  const writer = createWriter(stateDirectory);
  const loading = { stateDirectory, outcomes, values, durables };
  const sections = new Map<string, ReturnType<typeof createSection>>();
  let keptSections = new Map<string, Uint8Array>();
  let file: string | undefined;
  let isStarting = true;
  let isClosed = false;

  const commits = createSharedRuns(async (shut): Promise<Committed> => {
    const noDirectory = await failureOf(() => writer.prepare());
    shut();
    const { frozen, content } = freezeAll(values, [...durables, ...sections.values()], keptSections);
    const failure = noDirectory ?? (await failureOf(() => writer.write(content)));
    if (failure) outcomes.failed(failure.reason, failure.cause);
    else outcomes.succeeded();
    values.publish(frozen);
    return { sequence: writer.sequence(), degraded: failure?.reason };
  });
  const unreadable = (name: string) => (error: unknown) => {
    if (isStarting) throw sectionUnreadable(file ?? options.directory, name, error);
    log.write('error', 'a section of the state cannot be read and begins with nothing', {
      section: name,
      error,
    });
  };
  const close = async () => {
    isClosed = true;
    await commits.idle();
    await stateDirectory.leave();
  };

  return {
    async load() {
      const restored = await loadState(loading, options.ignored ?? new Set());
      keptSections = new Map(restored.keptSections);
      file = restored.file;
      writer.follow(restored.sequence);
      return { sequence: restored.sequence };
    },
    section(name) {
      const known = sections.get(name);
      if (known) return known;
      const opened = createSection(name, keptSections.get(name) ?? new Uint8Array(0), unreadable(name));
      keptSections.delete(name);
      sections.set(name, opened);
      return opened;
    },
    started() {
      isStarting = false;
    },
    async refuse(cause) {
      if (file !== undefined) await setAside(loading, [{ file, cause }]);
      await close();
      return file;
    },
    commit() {
      if (isClosed)
        return Promise.reject(new AgentError('internal', { where: 'state', what: 'commit after close' }));
      return commits.join();
    },
    status: () => ({ directory: options.directory, sequence: writer.sequence(), ...outcomes.status() }),
    close,
  };
}
