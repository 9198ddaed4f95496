import nodeFs from 'node:fs/promises';
import type { DurableValues, Frozen } from '../../core/durable-store.ts';
import { AgentError } from '../../core/errors.ts';
import type { Clock, Durable, Log } from '../../core/ports.ts';
import type { DegradedReason } from '../../core/reasons.ts';
import type { Content } from './snapshot.ts';
import { type StateFs, StepFailure, type StoredSnapshot, type UnreadFile } from './snapshot-files.ts';
import {
  type CommitOutcomes,
  type CommitStatus,
  createCommitOutcomes,
  createStateDirectory,
  createWriter,
  isLocked,
  type StateDirectory,
} from './writer.ts';

export interface Turns<T> {
  /** The next turn that has not shut its door; it starts one if there is none. */
  join(): Promise<T>;
  /** Resolves when no turn runs or waits; never rejects. */
  idle(): Promise<void>;
}

/**
 * Runs `run` one at a time. Callers share a run until it calls `shut`; those that come later share the next,
 * so that one runs and one waits at most.
 */
export function createTurns<T>(run: (shut: () => void) => Promise<T>): Turns<T> {
  let open: Promise<T> | undefined;
  let last: Promise<void> = Promise.resolve();

  const start = (): Promise<T> => {
    const shut = () => {
      if (open === turn) open = undefined;
    };
    const turn = last.then(() => run(shut));
    last = turn.then(shut, shut);
    open = turn;
    return turn;
  };
  return { join: () => open ?? start(), idle: () => last };
}

/**
 * A section of the state whose owner opens after the snapshot was read (it needs the registry, which needs the
 * restored values), and may change with a reload. Between owners the section stays as it was.
 */
export interface StateSection extends Durable {
  /** Hands the section over; from now on the owner freezes it. */
  hand(owner: Durable): void;
}

export function createStateSection(name: string): StateSection {
  let section: Uint8Array = new Uint8Array(0);
  let owner: Durable | undefined;
  return {
    name,
    freeze: () => owner?.freeze() ?? section,
    restore(restored) {
      section = restored;
    },
    hand(to) {
      const before = owner?.freeze() ?? section;
      if (before.length > 0) to.restore(before);
      owner = to;
    },
  };
}

export interface Restored {
  /** The snapshot's sequence; 0 if the state begins with nothing. */
  readonly sequence: number;
  /** Sections that no durable asked for, to be kept until their component is back. */
  readonly carried: ReadonlyMap<string, Uint8Array>;
  /** Snapshots whose table could not be read, newer than the one taken. */
  readonly refused: readonly UnreadFile[];
}

/** A section that cannot be read: others may have been taken by then, and half a state gives wrong numbers. */
class SectionUnreadable extends AgentError {
  readonly file: string;

  constructor(file: string, section: string, cause: unknown) {
    const what = `section ${JSON.stringify(section)} cannot be read; the file is set aside`;
    const allowed = 'start again, from the snapshot before it or from nothing';
    super('state_unreadable', { where: file, what, allowed }, cause);
    this.file = file;
  }
}

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
      throw new SectionUnreadable(file, durable.name, cause);
    }
  }
  // Copied, or a small section would keep the whole file in memory.
  return new Map([...rest].map(([name, bytes]) => [name, bytes.slice()]));
}

/** Takes the newest snapshot whose table `values` can read. Throws `SectionUnreadable`. */
function restoreNewest(
  snapshots: readonly StoredSnapshot[],
  { values, durables }: { values: DurableValues; durables: readonly Durable[] },
): Restored {
  const refused: UnreadFile[] = [];
  for (const snapshot of snapshots) {
    try {
      values.restore(snapshot.table, snapshot.values);
    } catch (cause) {
      refused.push({ file: snapshot.file, cause });
      continue;
    }
    return { sequence: snapshot.sequence, carried: restoreSections(snapshot, durables), refused };
  }
  return { sequence: 0, carried: new Map(), refused };
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
    return (await stateDirectory.look()).snapshots;
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

/** Enters the directory and restores; see `State.load`. Gives the directory back if it throws. */
async function loadState(deps: LoadDeps): Promise<Restored> {
  const snapshots = await enter(deps);
  try {
    const restored = restoreNewest(snapshots, deps);
    await setAside(deps, restored.refused);
    return restored;
  } catch (error) {
    if (error instanceof SectionUnreadable) await setAside(deps, [{ file: error.file, cause: error }]);
    await deps.stateDirectory.leave();
    throw error;
  }
}

interface StateOptions {
  directory: string;
  /** Syncs file and directory at each commit: power loss then brings back nothing older either. */
  fsync: boolean;
}

interface StateDeps {
  values: DurableValues;
  durables: readonly Durable[];
  clock: Clock;
  log: Log;
  fs?: StateFs;
}

export interface Committed {
  /** The snapshot that holds what is shown; while degraded, the last one that could be written. */
  readonly sequence: number;
  /** Why what is shown now is in memory only. */
  readonly degraded?: DegradedReason;
}

interface StateStatus extends CommitStatus {
  readonly directory: string;
  readonly sequence: number;
}

/** Commit before expose (DESIGN §3): what is shown is never ahead of what a restart brings back. */
export interface State {
  /**
   * Takes the directory and restores the newest readable snapshot, before anything starts. A directory that
   * cannot be had or written to leaves the state degraded. Throws `state_locked` if another agent has it,
   * `state_unreadable` if a durable cannot read its section: the file is then set aside, for the next start.
   */
  load(): Promise<{ sequence: number }>;
  /**
   * Freezes at some moment after the call, writes, then publishes the freeze. Callers share a commit as long
   * as it has not frozen. When the write fails it publishes all the same, and says so. Rejects only when a
   * freeze itself throws, or after `close`.
   */
  commit(): Promise<Committed>;
  status(): StateStatus;
  /** Lets commits end and gives the directory back; commits nothing by itself. */
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
    throw new AgentError('internal', { where: 'state', what: 'two durables of a name', got: twice });
}

/** One step of time: what is in the values belongs to what is in the sections. */
function freezeAll(
  { values, durables }: StateDeps,
  carried: Restored['carried'],
): { frozen: Frozen; content: Content } {
  const frozen = values.freeze();
  const sections = new Map(carried);
  for (const durable of durables) sections.set(durable.name, durable.freeze());
  return { frozen, content: { table: frozen.table, values: frozen.values, sections } };
}

/** Throws `internal` on two durables of one name. */
export function createState(options: StateOptions, deps: StateDeps): State {
  checkNames(deps.durables);
  const log = deps.log.named('state');
  const stateDirectory = createStateDirectory(options, { fs: deps.fs ?? nodeFs, clock: deps.clock, log });
  const outcomes = createCommitOutcomes(options.directory, { log, clock: deps.clock });
  const writer = createWriter(stateDirectory);
  let carried: Restored['carried'] = new Map();
  let isClosed = false;

  const turns = createTurns(async (shut): Promise<Committed> => {
    const noDirectory = await failureOf(() => writer.prepare());
    shut();
    const { frozen, content } = freezeAll(deps, carried);
    const failure = noDirectory ?? (await failureOf(() => writer.write(content)));
    if (failure) outcomes.failed(failure.reason, failure.cause);
    else outcomes.succeeded();
    deps.values.publish(frozen);
    return { sequence: writer.sequence(), degraded: failure?.reason };
  });

  return {
    async load() {
      const restored = await loadState({ stateDirectory, outcomes, ...deps });
      carried = restored.carried;
      writer.follow(restored.sequence);
      return { sequence: restored.sequence };
    },
    commit() {
      if (isClosed)
        return Promise.reject(new AgentError('internal', { where: 'state', what: 'commit after close' }));
      return turns.join();
    },
    status: () => ({ directory: options.directory, sequence: writer.sequence(), ...outcomes.status() }),
    async close() {
      isClosed = true;
      await turns.idle();
      await stateDirectory.leave();
    },
  };
}
