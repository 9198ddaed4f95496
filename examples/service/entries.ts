import type { Role } from '../../src/core/catalog.ts';
import type { LogLevel } from '../../src/core/ports.ts';
import type { Random } from './random.ts';
import { type PersistenceOperation, taskLists } from './world.ts';

/** One log entry (spec, Log entry); fields keep their order in the file. */
export type Entry = Readonly<Record<string, string | number>> & { level: LogLevel; msg: string };

interface Template {
  level: LogLevel;
  logger: string;
  msg: string;
  weight: number;
}

const line = (level: LogLevel, logger: string, msg: string, weight: number): Template => ({
  level,
  logger,
  msg,
  weight,
});

const everyday: Readonly<Record<Role, readonly Template[]>> = {
  frontend: [
    line('info', 'frontend', 'Workflow execution started', 60),
    line('info', 'frontend', 'Poll request answered', 36),
    line('warn', 'frontend', 'Frontend request timedout', 3),
    line('error', 'frontend', 'Internal service error', 1),
  ],
  history: [
    line('info', 'history-engine', 'Decision task completed', 60),
    line('info', 'transfer-queue-processor', 'Transfer task processed', 30),
    line('warn', 'shard-controller', 'Shard ack levels diff exceeds warn threshold.', 3),
    line('error', 'transfer-queue-processor', 'Fail to process task', 1),
  ],
  matching: [
    line('info', 'matching-engine', 'Task dispatched', 70),
    line('info', 'tasklist', 'Task list lease renewed', 27),
    line('warn', 'tasklist', 'Task list has no recent poller', 3),
  ],
  worker: [
    line('info', 'archiver', 'Archival request processed', 50),
    line('info', 'scanner', 'Scan of task lists finished', 47),
    line('warn', 'archiver', 'Archival request will be retried', 3),
  ],
};

const started = ['Starting service', 'RuntimeMetricsReporter started', 'service started'];

/** Writes what the logs of one role say. Times are ms since the epoch. */
interface Entries {
  everyday(atMs: number): Entry;
  persistenceError(atMs: number, operation: PersistenceOperation): Entry;
  starting(atMs: number): Entry[];
  stopping(atMs: number): Entry;
  fatal(atMs: number): Entry;
}

export function createEntries(role: Role, random: Random): Entries {
  const head = (atMs: number, level: LogLevel, msg: string, logger: string) => ({
    ts: new Date(atMs).toISOString(),
    level,
    msg,
    logger,
    service: `svc-${role}`,
  });

  function workflow() {
    const list = random.weighted(taskLists);
    return {
      'wf-domain-name': list.domain,
      'wf-id': `${list.idPrefix}-${random.integer(1, 99_999)}`,
      'wf-run-id': random.uuid(),
      'shard-id': random.integer(0, 15),
    };
  }

  function persistenceError(atMs: number, operation: PersistenceOperation): Entry {
    const error = 'Operation timed out - received only 1 of 2 responses.';
    return operation.storeOperation
      ? {
          ...head(atMs, 'error', 'Persistent store operation failure', 'shard'),
          ...workflow(),
          'store-operation': operation.storeOperation,
          error,
        }
      : {
          ...head(atMs, 'error', 'Operation failed with internal error.', 'persistence'),
          ...workflow(),
          operation: operation.name,
          error,
        };
  }

  return {
    everyday: (atMs) => {
      const { level, msg, logger } = random.weighted(everyday[role]);
      return { ...head(atMs, level, msg, logger), ...workflow() };
    },
    persistenceError,
    starting: (atMs) => started.map((msg) => head(atMs, 'info', msg, role)),
    stopping: (atMs) => head(atMs, 'warn', 'Service status is: ShuttingDown', role),
    fatal: (atMs) => ({
      ...head(atMs, 'fatal', 'Unable to keep membership of the ring', role),
      error: 'ring: no peers',
    }),
  };
}
