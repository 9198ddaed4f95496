import nodeFs from 'node:fs/promises';
import type { DurableValues, Frozen } from '../../core/durable.ts';
import { AgentError } from '../../core/errors.ts';
import type { Clock, Durable, Log } from '../../core/ports.ts';
import type { DegradedReason } from '../../core/reasons.ts';
import { type StateFs, StepFailure } from './files.ts';
import { loadState } from './load.ts';
import { createOutcomes, type OutcomeStatus } from './outcomes.ts';
import { createPlace } from './place.ts';
import type { Restored } from './restore.ts';
import type { Content } from './snapshot.ts';
import { createTurns } from './turns.ts';
import { createWriter } from './writer.ts';

export interface StateOptions {
  directory: string;
  /** Syncs file and directory at each commit: power loss then brings back nothing older either. */
  fsync: boolean;
}

export interface StateDeps {
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

export interface StateStatus extends OutcomeStatus {
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
  const place = createPlace(options, { fs: deps.fs ?? nodeFs, clock: deps.clock, log });
  const outcomes = createOutcomes(options.directory, { log, clock: deps.clock });
  const writer = createWriter(place);
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
      const restored = await loadState({ place, outcomes, ...deps });
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
      await place.leave();
    },
  };
}
