import type { ProbeDeps } from '../probe.ts';
import { archivedLogOf, checkOf, clockAheadOf, identityOf, tablesOf } from '../stores/store-changes.ts';
import { storeRoles } from '../stores/store-options.ts';
import type { ArchivedLog, LogWriter } from '../stores/store-report.ts';
import type { BackupOptions } from './block.ts';
import type { Artifact, Evidence, VerifyAnswer } from './evidence.ts';
import type { Written } from './log-chain.ts';

/** The results of the polls of a store, with which a backup is compared. */

type Latest = NonNullable<ProbeDeps['latest']>;

/** What is remembered about a store, for the time when it cannot be asked any more. */
export interface KnownStore {
  /** The tables of the store, and when each was first seen, ms since the epoch. */
  tables?: Readonly<Record<string, number>>;
  /** When a poll last saw that the node writes incremental backups, ms since the epoch. */
  onMs?: number;
  /** A period in which, at some moment, the node did not write incremental backups, ms since the epoch. */
  off?: { afterMs: number; untilMs: number };
  /** How far the store's clock, which sets the times in the log, is ahead of this host's, ms. */
  aheadMs?: number;
  /** Tables that are not in the log. */
  unlogged?: readonly string[];
  /** A database of this backup that the server leaves out of its binary log. */
  leavesOut?: string;
  /** Up to where a poll last saw that the primary had written its log. */
  wrote?: Written;
  /** Whose transactions in a binary log belong to the store. */
  writer?: LogWriter;
}

const pollsOfStore = (store: string | undefined): string[] => [
  `store/${store}`,
  ...storeRoles.map((role) => `store/${store}/${role}`),
];

/** The log according to the last polls of the store. */
export const logsOf = (store: string | undefined, latest: Latest): ArchivedLog[] =>
  pollsOfStore(store).flatMap((probe) => {
    const finding = latest(probe);
    const log = archivedLogOf(finding);
    return log === undefined ? [] : [{ ...log, identity: identityOf(finding) }];
  });

const writtenOf = (store: string | undefined, latest: Latest): Written | undefined =>
  logsOf(store, latest).flatMap(({ timeline, position, identity, askedMs: atMs }) =>
    timeline === undefined || position === undefined || atMs === undefined
      ? []
      : { timeline, position, identity, atMs },
  )[0];

/** Whether the last poll saw that the node writes incremental backups. */
export function incrementalsOn(store: string | undefined, latest: Latest): boolean | undefined {
  const seen = pollsOfStore(store).flatMap((probe) => checkOf(latest(probe), 'incremental_backups') ?? []);
  return seen.length === 0 ? undefined : seen.every((holds) => holds);
}

/** What is known about the store, including the results of its last poll. */
export function knownStore(
  { source, store, database }: BackupOptions,
  before: KnownStore = {},
  latest: Latest,
  { nowMs, databases }: { nowMs: number; databases: readonly string[] },
): KnownStore {
  const listed = database && tablesOf(latest(`store/${store}/${database}`));
  const tables = listed
    ? Object.fromEntries(listed.map((name) => [name, before.tables?.[name] ?? nowMs]))
    : before.tables;
  const unlogged = unloggedOf({ store, database }, latest) ?? before.unlogged;
  const ahead = pollsOfStore(store).flatMap((probe) => clockAheadOf(latest(probe)) ?? []);
  const aheadMs = ahead.length > 0 ? Math.max(...ahead) : before.aheadMs;
  const filter = logsOf(store, latest).find(({ leavesOut }) => leavesOut !== undefined)?.leavesOut;
  const leavesOut = filter ? databases.find((name) => filter.includes(name)) : before.leavesOut;
  const wrote = writtenOf(store, latest) ?? before.wrote;
  const writer = logsOf(store, latest).find((log) => log.writer !== undefined)?.writer ?? before.writer;
  const known = { ...before, ...(tables && { tables }), unlogged, leavesOut, aheadMs, wrote, writer };
  const isOn = source.kind === 'incrementals' ? incrementalsOn(store, latest) : undefined;
  if (isOn === undefined) return known;
  if (isOn) return { ...known, onMs: nowMs };
  return { ...known, off: { afterMs: known.off?.afterMs ?? known.onMs ?? 0, untilMs: nowMs } };
}

/** The unlogged tables of the database, or of all databases of the server; undefined if no database was asked. */
function unloggedOf(
  { store, database }: Pick<BackupOptions, 'store' | 'database'>,
  latest: Latest,
): string[] | undefined {
  const lists = (database ? [database] : storeRoles).flatMap((role) => {
    const list = tablesOf(latest(`store/${store}/${role}`), 'unlogged');
    return list ? [list] : [];
  });
  return lists.length > 0 ? lists.flat() : undefined;
}

/** Whether the first poll of one of the databases, given by their roles, is still to come. */
export const isAwaited = ({ store }: BackupOptions, roles: readonly string[], latest: Latest): boolean =>
  roles.some((role) => latest(`store/${store}/${role}`) === undefined);

/** Whether a poll of the store has ended, well or not. */
export const isAsked = (store: string | undefined, latest: Latest): boolean =>
  pollsOfStore(store).some((probe) => latest(probe) !== undefined);

/** Compares the content in a good answer with the databases and tables of the store. */
export const againstStore = (answer: VerifyAnswer, artifact: Artifact, evidence: Evidence): VerifyAnswer =>
  withoutRows(withTables(withDatabases(answer, evidence.expects), artifact, evidence), artifact, evidence);

/**
 * Adds unlogged tables to what a base backup may lack: the backup has no files of these tables, and the log has no rows of them.
 */
function withoutRows(
  answer: VerifyAnswer,
  { method }: Artifact,
  { unlogged, awaitsTables }: Evidence,
): VerifyAnswer {
  if (answer.result !== 'ok' || method !== 'postgres_base') return answer;
  const doubtful = (lacks: string) => ({ ...answer, content: { ...answer.content, lacks } });
  if (unlogged === undefined && awaitsTables)
    return doubtful('the store has not been asked yet whether it has unlogged tables');
  const [table] = unlogged ?? [];
  return table === undefined
    ? answer
    : doubtful(
        `it has no rows of ${table}, which is an unlogged table: make it logged (ALTER TABLE ${table} SET LOGGED)`,
      );
}

/** Marks a dump of another database as corrupt: it is no backup of this database. */
function withDatabases(answer: VerifyAnswer, expected: readonly string[] = []): VerifyAnswer {
  const there = answer.content?.databases;
  const missing = there && expected.find((name) => !there.includes(name));
  if (missing === undefined) return answer.content ? { ...answer, result: 'ok' } : answer;
  return { ...answer, result: 'corrupt', msg: `it is a backup of ${there!.join(', ')}, not of ${missing}` };
}

/**
 * Compares the tables in a backup with the tables of the store. A table that existed before the backup began and is not in it
 * would be lost in a restore; a table that was created after the backup ended is in the log. For a table that existed when the
 * agent first looked, either may be true.
 */
function withTables(
  answer: VerifyAnswer,
  { startMs, endMs }: Artifact,
  { tables, awaitsTables }: Evidence,
): VerifyAnswer {
  const { content } = answer;
  if (answer.result !== 'ok' || content === undefined) return answer;
  const doubtful = (lacks: string): VerifyAnswer => ({ ...answer, content: { ...content, lacks } });
  const known = { ...answer, content: { ...content, lacks: undefined } };
  if (tables === undefined) {
    if (content.tables && awaitsTables)
      return doubtful('the store has not been asked yet which tables it has');
    return content.isUnlisted
      ? doubtful('nothing in it shows whether a table is missing; let the agent reach the store')
      : known;
  }
  const there = new Set(content.tables);
  const missing = Object.keys(tables).filter((name) => !there.has(name));
  if (content.tables === undefined || missing.length === 0) return known;
  const firstMs = Math.min(...Object.values(tables));
  const lost = missing.find((name) => tables[name]! <= startMs);
  if (lost !== undefined) return { ...answer, result: 'corrupt', msg: `the table ${lost} is missing` };
  const unsure = missing.find((name) => tables[name] === firstMs || tables[name]! <= endMs);
  if (unsure === undefined) return known;
  return doubtful(`it lacks the table ${unsure} of the store; if that table is new, take another backup`);
}
