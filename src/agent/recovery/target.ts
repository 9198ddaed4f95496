import { existsSync, statSync } from 'node:fs';
import type { AgentConfig } from '../config/types.ts';
import { logFiles, readDumpHeader } from './binary-log.ts';
import type { RunProbe } from './checks.ts';
import type { Subject } from './commands.ts';
import type { LogReplay, RestoreUntil } from './restore.ts';

/** What is restored, and up to when: from the chain that the recovery probe found. */

/** The chain as the recovery probe shows it. */
export interface ChainShown {
  /** RFC 3339. */
  recoveryPoint?: string;
  links?: readonly { type: string; what: string; backup: string; to?: string }[];
}

export interface RestoreTarget {
  until?: RestoreUntil;
  /** Of MySQL and MariaDB: what is applied after the dump. */
  replay?: LogReplay;
  /** Up to when, ms since the epoch; undefined if it is not known before the restore. */
  reachesMs?: number;
  /** Why the restore cannot reach what was asked for. */
  refused?: string;
}

/** The chain with the newest recovery point; undefined without a verified backup. */
export async function chainNow(
  { store, database }: Subject,
  runProbe: RunProbe,
): Promise<ChainShown | undefined> {
  if (store === undefined) return undefined;
  const finding = await runProbe(`recovery/${store}/${database}`);
  return finding?.details?.chain as ChainShown | undefined;
}

const fullOf = (chain: ChainShown | undefined) => chain?.links?.find(({ type }) => type === 'full');

/**
 * Path of the full backup that the chain begins with. The backup with the latest recovery point may be a base backup
 * with its log, which is restored by hand; --backup names a dump instead.
 */
export function backupIn(chain: ChainShown | undefined, { backups }: AgentConfig): string | undefined {
  const full = fullOf(chain);
  const source = backups.find(({ name }) => name === full?.backup)?.source;
  return full && source && 'directory' in source ? `${source.directory}/${full.what}` : full?.what;
}

const untilOf = ({ until, untilXid, untilName }: Subject): RestoreUntil | undefined =>
  until === undefined && untilXid === undefined && untilName === undefined
    ? undefined
    : { time: until === undefined ? undefined : new Date(until), xid: untilXid, name: untilName };

/** `subject.backup` is the backup of the chain, or one that the operator named. */
export async function restoreTarget(
  subject: Subject,
  chain: ChainShown | undefined,
  config: AgentConfig,
): Promise<RestoreTarget> {
  const { backup } = subject;
  const until = untilOf(subject);
  const kind = config.stores.find(({ name }) => name === subject.store)?.kind;
  const isOfChain = backup !== undefined && backup === backupIn(chain, config);
  const pointMs = isOfChain ? timeOf(chain?.recoveryPoint) : undefined;
  const baseMs = isOfChain ? timeOf(fullOf(chain)?.to) : undefined;
  const reachesMs = until === undefined ? pointMs : until.time?.getTime();
  const refused = until && refusalOf(until, { ...subject, pointMs, baseMs }, config);
  if (kind !== 'mysql' || backup === undefined || !isFile(backup)) return { until, reachesMs, refused };
  const replay = await replayOf(subject, isOfChain ? chain : undefined, config);
  if (replay === undefined && until !== undefined)
    return {
      until,
      refused: refused ?? 'the dump does not record its place in a binary log that is observed',
    };
  return { until, replay: replay && { ...replay, until: until?.time }, reachesMs, refused };
}

const timeOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));
const isFile = (path: string) => existsSync(path) && statSync(path).isFile();

/** Why `--until` cannot be reached. */
function refusalOf(
  { time }: RestoreUntil,
  { store, backup, baseMs, pointMs }: Subject & { baseMs?: number; pointMs?: number },
  { stores, backups }: AgentConfig,
): string | undefined {
  const kind = stores.find(({ name }) => name === store)?.kind;
  if (kind === 'postgres' && backup !== undefined && isFile(backup))
    return 'no log can be applied to a dump of PostgreSQL: name a base backup with --backup';
  const log = backups.find((each) => each.store === store && each.type === 'log');
  if (log === undefined) return `no log of ${store} is observed: add an entry of type log to backups`;
  const atMs = time?.getTime();
  if (atMs === undefined) return undefined;
  if (baseMs !== undefined && atMs < baseMs)
    return `the newest backup is of ${new Date(baseMs).toISOString()}, after --until: name an older one with --backup`;
  if (pointMs !== undefined && atMs > pointMs)
    return `the log reaches to ${new Date(pointMs).toISOString()} only, before --until`;
  return undefined;
}

/** The files of the log from the place that the dump records, to the end of the chain where there is one. */
async function replayOf(
  { store, backup = '' }: Subject,
  chain: ChainShown | undefined,
  { backups }: AgentConfig,
): Promise<LogReplay | undefined> {
  const link = chain?.links?.findLast(({ type }) => type === 'log');
  const isBinlog = ({ store: of, source }: AgentConfig['backups'][number]) =>
    of === store && source.kind === 'segments' && source.log === 'binlog';
  const entry = link
    ? backups.find(({ name }) => name === link.backup)
    : chain
      ? undefined
      : backups.find(isBinlog);
  if (!entry || !isBinlog(entry) || !('directory' in entry.source)) return undefined;
  const { log: position, isMariadb } = await readDumpHeader(backup);
  if (position === undefined) return undefined;
  const files = logFiles(entry.source.directory, position, link?.what.split(' to ').at(-1));
  return { files, position, isMariadb };
}

export const filesText = ({ length }: readonly string[]): string =>
  `${length} ${length === 1 ? 'file' : 'files'}`;

/** Up to when the restore reaches, for people. */
export function reachText({ until, replay, reachesMs }: RestoreTarget): string {
  const log = replay ? ` The dump, then ${filesText(replay.files)} of the binary log.` : '';
  if (until?.xid !== undefined) return `Restores up to transaction ${until.xid}.${log}`;
  if (until?.name !== undefined) return `Restores up to the restore point ${until.name}.${log}`;
  if (until?.time) return `Restores what was written before ${until.time.toISOString()}.${log}`;
  if (reachesMs === undefined) return `Restores up to what the backup and its log hold.${log}`;
  return `Restores up to ${new Date(reachesMs).toISOString()}: what was written later is lost.${log}`;
}
