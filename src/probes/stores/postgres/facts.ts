import { type Question, questions } from './queries.ts';
import type { Answer, Row, Session } from './session.ts';

export interface Slot {
  name: string;
  type: string;
  active: boolean;
  /** reserved, extended, unreserved or lost; null for a slot that never reserved anything. */
  status: string | null;
}

/** What the server said, each part or why it is not known. */
export interface Facts {
  version: string;
  standby: boolean;
  startedAtMs?: number;
  /** By name; a setting that this version does not have is not there. */
  settings: Readonly<Record<string, string>>;
  /** Where a setting comes from: the configuration file, the database, the role. */
  sources: Readonly<Record<string, string>>;
  identity?: string;
  timeline?: number;
  archiver: Known<{ failures: number; failing: boolean; failedWal: string | null }>;
  backlog: Known<{ waiting: number; oldestMs?: number; ageS: number }>;
  slots: Known<{ list: readonly Slot[] }>;
  /** Programs that are sent the log; null for one whose name is hidden. */
  senders: Known<{ applications: readonly (string | null)[] }>;
  receiver: Known<{ receivers: number; paused: boolean; lagS: number | null }>;
  connections: Known<{ byState: Readonly<Record<string, number>> }>;
  /** Failures are null while checksums are off. */
  checksums: Known<{ failures: number | null }>;
  wraparound: Known<{ age: number }>;
}

export type Known<T> = T | { unknown: string };

function known<T>(answer: Answer, read: (rows: readonly Row[]) => T): Known<T> {
  return 'unknown' in answer ? answer : read(answer.rows);
}

/** The first row's column as what the query makes of it; undefined where there is no answer. */
function first<T>(answer: Answer, column: string): T | undefined {
  return 'unknown' in answer ? undefined : ((answer.rows[0]?.[column] ?? undefined) as T | undefined);
}

const notAsked: Answer = { unknown: 'only a standby has one' };

/** Asks everything, one question after the other. Throws when the session ends, or cannot even say its version. */
export async function factsOf({ ask }: Pick<Session, 'ask'>): Promise<Facts> {
  const answer = (question: Question) => ask(questions[question]);
  const server = await answer('server');
  const settings = await answer('settings');
  const standby = first<boolean>(server, 'standby') ?? false;
  const started = first<number>(server, 'started');
  return {
    version: first<string>(server, 'version') ?? 'unknown',
    standby,
    ...(started !== undefined && { startedAtMs: started * 1000 }),
    settings: byName(settings, 'setting'),
    sources: byName(settings, 'source'),
    identity: first<string>(await answer('identity'), 'id'),
    timeline: first<number>(await answer('timeline'), 'timeline'),
    archiver: known(await answer('archiver'), readArchiver),
    backlog: known(await answer('backlog'), readBacklog),
    slots: known(await answer('slots'), (rows) => ({ list: rows as unknown as Slot[] })),
    senders: known(await answer('senders'), readSenders),
    receiver: known(standby ? await answer('receiver') : notAsked, readReceiver),
    connections: known(await answer('connections'), readConnections),
    checksums: known(await answer('checksums'), ([row]) => ({ failures: row!.failures as number | null })),
    wraparound: known(await answer('wraparound'), ([row]) => ({ age: row!.age as number })),
  };
}

function byName(answer: Answer, column: string): Readonly<Record<string, string>> {
  return 'unknown' in answer
    ? {}
    : Object.fromEntries(answer.rows.map((row) => [row.name as string, row[column] as string]));
}

function readArchiver([row]: readonly Row[]) {
  return {
    failures: row!.failures as number,
    failing: row!.failing as boolean,
    failedWal: row!.failed_wal as string | null,
  };
}

function readBacklog([row]: readonly Row[]) {
  const oldest = row!.oldest as number | null;
  return {
    waiting: row!.waiting as number,
    ...(oldest !== null && { oldestMs: oldest * 1000 }),
    ageS: (row!.age as number | null) ?? 0,
  };
}

function readSenders(rows: readonly Row[]) {
  return { applications: rows.map(({ application }) => application as string | null) };
}

function readReceiver([row]: readonly Row[]) {
  return {
    receivers: row!.receivers as number,
    paused: row!.paused as boolean,
    lagS: row!.lag as number | null,
  };
}

function readConnections(rows: readonly Row[]) {
  const byState: Record<string, number> = {};
  for (const { state, count } of rows) {
    const name = (state as string).replace(/[^a-z]+/g, '_').replace(/^_|_$/g, '');
    byState[name] = (byState[name] ?? 0) + (count as number);
  }
  return { byState };
}
