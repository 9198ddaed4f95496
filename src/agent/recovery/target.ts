import { existsSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { AgentConfig } from '../config/types.ts';
import { isBaseBackup, type RestoreUntil, walArchive } from './base-restore.ts';
import { logFiles, readDumpHeader } from './binary-log.ts';
import type { RunProbe } from './checks.ts';
import type { Subject } from './commands.ts';
import type { LogReplay } from './restore.ts';
import { findWalEnd } from './wal-target.ts';

/** Determines what is restored, and to which point in time, from the chain that the recovery probe found. */

/** The chain as the recovery probe shows it. */
interface ChainShown {
  /** RFC 3339. */
  recoveryPoint?: string;
  links?: readonly { type: string; what: string; backup: string; to?: string }[];
}

/**
 * What a run restores, as it was when the run began. A run that continues after a kill restores the same: meanwhile a dump may
 * have been taken of a partly restored database, and the binary log contains the statements of the restore itself.
 */
export interface Chosen {
  backup?: string;
  /** The name of the last file of the binary log. */
  lastLog?: string;
  /** Ms since the epoch. */
  reachesMs?: number;
  /** Whether an earlier run had begun to restore this: then its statements are in the log. */
  isKept?: boolean;
}

interface RestoreTarget {
  until?: RestoreUntil;
  /** MySQL and MariaDB only: the log that is applied after the dump. */
  replay?: LogReplay;
  /** The point in time that the restore reaches, ms since the epoch; undefined if it is not known before the restore. */
  reachesMs?: number;
  /** Why the restore cannot reach what was requested. */
  refused?: string;
  /** The point in time that the restore reaches, as text for people. */
  reaches: string;
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
 * The path of the full backup with which the chain begins. The backup with the latest recovery point may be a base backup with
 * its log, which is restored by hand; --backup names a dump instead.
 */
export function backupIn(chain: ChainShown | undefined, { backups }: AgentConfig): string | undefined {
  const full = fullOf(chain);
  const source = backups.find(({ name }) => name === full?.backup)?.source;
  return full && source && 'directory' in source ? `${source.directory}/${full.what}` : full?.what;
}

const untilOf = ({ until, untilXid, untilName, untilTimeline }: Subject): RestoreUntil | undefined =>
  [until, untilXid, untilName, untilTimeline].every((each) => each === undefined)
    ? undefined
    : {
        time: until === undefined ? undefined : new Date(until),
        xid: untilXid,
        name: untilName,
        timeline: untilTimeline === undefined ? undefined : Number(untilTimeline),
      };

interface Target {
  subject: Subject;
  chain: ChainShown | undefined;
  /** What an earlier, unfinished run chose to restore; undefined without such a run. */
  held: Chosen | undefined;
  config: AgentConfig;
}

/**
 * Determines the target. `subject.backup` is the backup of the chain, the backup of an earlier run, or a backup that the operator
 * named.
 */
export async function restoreTarget(target: Target): Promise<RestoreTarget> {
  const { subject, chain, held, config } = target;
  const { backup } = subject;
  const isHeld = backup !== undefined && backup === held?.backup;
  const isOfChain = !isHeld && backup !== undefined && backup === backupIn(chain, config);
  const pointMs = isHeld ? held.reachesMs : isOfChain ? timeOf(chain?.recoveryPoint) : undefined;
  const until = untilOf(subject);
  const isOwn = config.recovery.commands.restore !== undefined;
  // Snapshots and the backups of tools have names that are not paths.
  const refused =
    (backup?.startsWith('/') && !existsSync(backup)
      ? `${backup} of the earlier run is gone: name a backup with --backup`
      : undefined) ??
    (until &&
      refusalOf(until, { ...subject, pointMs, baseMs: isOfChain ? baseOf(chain) : undefined }, config));
  if (refused !== undefined) return { until, refused, reaches: '' };
  const kind = config.stores.find(({ name }) => name === subject.store)?.kind;
  const found = await (kind === 'mysql'
    ? mysqlTarget(until, isOfChain, target)
    : kind === 'postgres'
      ? postgresTarget(until, subject, config)
      : {});
  const reached = { until, reachesMs: until?.time?.getTime() ?? (until ? undefined : pointMs), ...found };
  return { ...reached, reaches: reachText(reached, isOwn) };
}

const timeOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));
const baseOf = (chain: ChainShown | undefined) => timeOf(fullOf(chain)?.to);
const isFile = (path: string) => existsSync(path) && statSync(path).isFile();

/** The names of the options that are given. */
const optionsOf = ({ time, xid, name, timeline }: RestoreUntil): readonly string[] =>
  Object.entries({ '--until': time, '--until-xid': xid, '--until-name': name, '--until-timeline': timeline })
    .filter(([, value]) => value !== undefined)
    .map(([option]) => option);

/** Why `--until` cannot be reached. */
function refusalOf(
  until: RestoreUntil,
  { store, backup, baseMs, pointMs }: Subject & { baseMs?: number; pointMs?: number },
  { stores, backups, recovery }: AgentConfig,
): string | undefined {
  const kind = stores.find(({ name }) => name === store)?.kind;
  const own = recovery.commands.restore;
  if (own) {
    const [option] = optionsOf(until).filter((each) => each !== '--until' || !own.some(hasUntil));
    if (option !== undefined)
      return `recovery.commands.restore does not take ${option}: ${option === '--until' ? 'give it {until}' : 'leave it out of the configuration to restore by hand'}`;
  }
  if (kind === 'postgres' && backup !== undefined && isFile(backup))
    return 'no log can be applied to a dump of PostgreSQL: name a base backup with --backup';
  const log = backups.find((each) => each.store === store && each.type === 'log');
  if (log === undefined) return `no log of ${store} is observed: add an entry of type log to backups`;
  const atMs = until.time?.getTime();
  if (atMs === undefined) return undefined;
  if (baseMs !== undefined && atMs < baseMs)
    return `the newest backup is of ${new Date(baseMs).toISOString()}, after --until: name an older one with --backup`;
  if (pointMs !== undefined && until.timeline === undefined && atMs > pointMs)
    return `the log only reaches to ${new Date(pointMs).toISOString()}, which is before --until: leave --until out to restore all of it`;
  return undefined;
}

const hasUntil = (word: string) => word.includes('{until}');

/**
 * The target for PostgreSQL. If the log does not contain the target, PostgreSQL would end its start with an error while the
 * server is down, so this is checked before.
 */
async function postgresTarget(
  until: RestoreUntil | undefined,
  { store = '', backup }: Subject,
  config: AgentConfig,
): Promise<Partial<RestoreTarget>> {
  const archive = walArchive(store, config);
  if (!until || archive === undefined || backup === undefined || !isBaseBackup(backup)) return {};
  const { refused, isWhole } = await findWalEnd(backup, archive, until);
  return { refused, ...(isWhole && { until: { ...until, time: undefined } }) };
}

/**
 * The target for MySQL and MariaDB: the dump, and the files of the log from the position that the dump states to the end of the
 * chain, if there is one.
 */
async function mysqlTarget(
  until: RestoreUntil | undefined,
  isOfChain: boolean,
  { subject, chain, held, config }: Target,
): Promise<Partial<RestoreTarget>> {
  const { backup } = subject;
  if (backup === undefined || !isFile(backup)) return {};
  const last = chain?.links?.findLast(({ type }) => type === 'log');
  const hasNone = held ? held.lastLog === undefined : isOfChain && last === undefined;
  const replay = hasNone
    ? undefined
    : await replayOf(backup, {
        ...{ store: subject.store, config, entry: isOfChain ? last?.backup : undefined },
        last: held ? held.lastLog : isOfChain ? last?.what.split(' to ').at(-1) : undefined,
      });
  if (replay === undefined && until !== undefined)
    return { refused: 'the dump does not record its place in a binary log that is observed' };
  // mysqlbinlog ends at a whole second.
  const time = until?.time && new Date(Math.floor(until.time.getTime() / 1000) * 1000);
  return {
    replay: replay && { ...replay, until: time },
    ...(time && { until: { ...until, time }, reachesMs: time.getTime() }),
  };
}

async function replayOf(
  backup: string,
  {
    store,
    entry,
    last,
    config,
  }: { store?: string; entry: string | undefined; last: string | undefined; config: AgentConfig },
): Promise<LogReplay | undefined> {
  const log = config.backups.find(
    ({ name, store: of, source }) =>
      (entry === undefined || name === entry) &&
      of === store &&
      source.kind === 'segments' &&
      source.log === 'binlog',
  );
  if (log === undefined || !('directory' in log.source)) return undefined;
  const { log: position, isMariadb } = await readDumpHeader(backup);
  if (position === undefined) return undefined;
  return { files: logFiles(log.source.directory, position, last), position, isMariadb };
}

/** What this run restores, for a later run that continues it. */
export const chosenOf = (
  { backup }: Subject,
  { replay, reachesMs }: RestoreTarget,
  held: Chosen | undefined,
): Chosen => ({
  ...(held && { isKept: true }),
  backup,
  lastLog: held ? held.lastLog : replay?.files.length ? basename(replay.files.at(-1)!) : undefined,
  reachesMs,
});

export const filesText = ({ length }: readonly string[]): string =>
  `${length} ${length === 1 ? 'file' : 'files'}`;

/**
 * The point in time that the restore reaches, as text for people. A command of the configuration has to apply the log by itself.
 */
function reachText({ until, replay, reachesMs }: Omit<RestoreTarget, 'reaches'>, isOwn: boolean): string {
  const log = isOwn
    ? ' This is done by recovery.commands.restore.'
    : replay
      ? ` The dump, then ${filesText(replay.files)} of the binary log.`
      : '';
  if (until?.xid !== undefined) return `Restores up to transaction ${until.xid}.${log}`;
  if (until?.name !== undefined) return `Restores up to the restore point ${until.name}.${log}`;
  if (until?.time) return `Restores what was written before ${until.time.toISOString()}.${log}`;
  if (until?.timeline !== undefined) return `Restores all of timeline ${until.timeline}.${log}`;
  if (reachesMs === undefined) return `Restores everything that the backup and its log hold.${log}`;
  return `Restores up to ${new Date(reachesMs).toISOString()}: what was written later is lost.${log}`;
}
