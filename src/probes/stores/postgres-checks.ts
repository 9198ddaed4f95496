import type { StoreCheck } from '../../core/check-severity.ts';
import { excerpt } from '../probe.ts';
import type { Blocker, Known, PostgresFacts, Slot, Standby } from './postgres-facts.ts';
import type { CheckResult, LogState } from './store-report.ts';

/** The spec's RPO for the log: what has not been copied elsewhere by then is lost with the server. */
const longestUnarchivedS = 300;
/** A limit at half of the transactions after which the server refuses writes to protect itself. */
const oldestTransactionAge = 1_000_000_000;
const namedAtMost = 3;

type FactResult = Omit<CheckResult, 'check'>;

const unknown = (found: string): FactResult => ({ holds: 'unknown', found });

function ifKnown<T extends object, R>(part: Known<T>, assess: (part: T) => R): R | FactResult {
  return 'unknown' in part ? unknown((part as { unknown: string }).unknown) : assess(part as T);
}

/** The result for one setting, as `name = value`. */
function setting({ settings }: PostgresFacts, name: string, isRight: (value: string) => boolean): FactResult {
  const value = settings[name];
  if (value === undefined) return unknown(`${name} is hidden`);
  return { holds: isRight(value), found: `${name} = ${value}` };
}

function firstFew(names: readonly string[]): string {
  const more = names.length - namedAtMost;
  return names.slice(0, namedAtMost).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** Whether the server itself archives its log: a standby does so only with `always`. */
export function archives({ standby, settings: { archive_mode: mode } }: PostgresFacts): boolean {
  return mode === 'always' || (mode === 'on' && !standby);
}

/** The name of a program that receives the log and writes it to an archive. Standbys and logical subscribers do not count. */
function archivingReceiver({ receivers }: PostgresFacts): string | undefined {
  return 'unknown' in receivers ? undefined : (receivers.archiving ?? undefined);
}

function archiveMode(facts: PostgresFacts): FactResult {
  const { archive_mode: mode, archive_command: command = '', archive_library: library = '' } = facts.settings;
  if (mode === undefined) return unknown('archive_mode is hidden');
  const isOn = mode !== 'off';
  const fault =
    isOn && library === '' && command === ''
      ? ', archive_command is empty'
      : isOn && library === '' && command === 'nothing'
        ? ', archive_command does nothing'
        : '';
  const found = `archive_mode = ${mode}${fault}`;
  if (isOn && fault === '') return { holds: true, found };
  const receiver = archivingReceiver(facts);
  if (receiver) return { holds: true, found: `${found}, but ${receiver} receives the log` };
  const isHidden = 'unknown' in facts.receivers || facts.receivers.hidden > 0;
  return isHidden ? unknown(`${found}, and who receives the log is hidden`) : { holds: false, found };
}

/** Checks archive_timeout. Without archiving there is nothing to check, and the check archive_mode reports that. */
function archiveTimeout(facts: PostgresFacts): FactResult | undefined {
  if (!archives(facts)) return undefined;
  return setting(facts, 'archive_timeout', (value) => +value > 0 && +value <= longestUnarchivedS);
}

function archiver(facts: PostgresFacts): FactResult | undefined {
  if (!archives(facts)) return undefined;
  return ifKnown(facts.archiver, ({ failing, failures, failedWal }) => ({
    holds: !failing,
    found: failing
      ? `${failedWal} was not archived, ${failures} failures in all`
      : `${failures} failures in all`,
  }));
}

function walBacklog(facts: PostgresFacts): FactResult | undefined {
  if (!archives(facts)) return undefined;
  return ifKnown(facts.backlog, ({ waiting, ageS }) => ({
    holds: ageS <= longestUnarchivedS,
    found: waiting === 0 ? 'nothing waits' : `${waiting} segments wait, the oldest for ${Math.round(ageS)} s`,
  }));
}

const mebibyte = 1024 * 1024;

const inMebibytes = (bytes: number) => Math.round(bytes / mebibyte);

/** How much WAL the server keeps in any case. */
function keptBytes({ settings }: PostgresFacts): number {
  const kept = mebibyte * Math.max(+(settings.max_wal_size ?? 0), +(settings.wal_keep_size ?? 0));
  return kept > 0 ? kept : Number.POSITIVE_INFINITY;
}

/** Checks the slots. A slot is assessed by the WAL that it holds back: more than the server keeps in any case fills the disk. */
function slots(facts: PostgresFacts): FactResult {
  const isExcessive = ({ status, held }: Slot) =>
    status === 'lost' || status === 'unreserved' || (held ?? 0) > keptBytes(facts);
  const described = ({ name, active, status, held }: Slot) =>
    [
      `${name}${active ? '' : ' is inactive and'} holds back ${inMebibytes(held ?? 0)} MiB`,
      ...(status === 'lost' || status === 'unreserved' ? [`is ${status}`] : []),
    ].join(' and ');
  return ifKnown(facts.slots, ({ list }) => {
    const excessive = list.filter(isExcessive);
    if (excessive.length > 0) return { holds: false, found: firstFew(excessive.map(described)) };
    return { holds: true, found: list.length === 0 ? 'no slots' : firstFew(list.map(described)) };
  });
}

/** Matches sources of a setting that apply only to the agent's own role. */
const ownSource = /user|client|session/;

function durableSettings({ settings, sources, isServiceUser, asynchronous }: PostgresFacts): FactResult {
  const all = ['fsync', 'full_page_writes', 'synchronous_commit'];
  const own = isServiceUser ? [] : all.filter((name) => ownSource.test(sources[name] ?? ''));
  const names = all.filter((name) => !own.includes(name));
  const off = names.filter((name) => settings[name] === 'off').map((name) => `${name} = off`);
  const roles = 'unknown' in asynchronous ? [] : asynchronous.roles;
  if (roles.length > 0) off.push(`synchronous_commit = off for ${firstFew(roles)}`);
  if (off.length > 0) return { holds: false, found: off.join(', ') };
  if (names.some((name) => settings[name] === undefined)) return unknown('the settings are hidden');
  if (own.length > 0)
    return unknown(
      `${own.join(', ')} is set for the agent’s own role, which hides the server’s: ALTER ROLE … RESET ${own[0]}`,
    );
  if ('unknown' in asynchronous) return unknown(asynchronous.unknown);
  return { holds: true, found: names.map((name) => `${name} = ${settings[name]}`).join(', ') };
}

/** Checks checksums. The number of failures is null while checksums are off. */
export function checksumCheck(checksums: Known<{ failures: number | null }>): CheckResult {
  const result = ifKnown(checksums, ({ failures }) =>
    failures === null
      ? unknown('data_checksums is off')
      : { holds: failures === 0, found: `${failures} pages failed their checksum` },
  );
  return { check: 'checksum_failures', ...result };
}

/**
 * Whether a standby is behind, in seconds or in bytes. A standby that has stopped replaying reports its last seconds for ever.
 */
function isBehind(facts: PostgresFacts, { lag, behind }: Standby): boolean {
  return (lag ?? 0) > longestUnarchivedS || (behind ?? 0) > keptBytes(facts);
}

/**
 * Checks the standbys of this server. Without standbys, and if no synchronous standby is configured, there is nothing to check.
 */
function standbys(facts: PostgresFacts): FactResult | undefined {
  const { synchronous_standby_names: names = '', synchronous_commit: commit = '' } = facts.settings;
  const waits = names !== '' && !facts.standby && !['off', 'local'].includes(commit);
  return ifKnown(facts.standbys, ({ list }) => {
    if (list.length === 0 && !waits) return undefined;
    const seen = list.filter(({ hidden }) => !hidden);
    const described = firstFew(
      seen.map(
        (one) =>
          `${excerpt(one.name, 60)} (${one.synchronous ? 'synchronous' : 'asynchronous'}) ${Math.round(one.lag ?? 0)} s and ${inMebibytes(one.behind ?? 0)} MiB behind`,
      ),
    );
    if (seen.some((one) => isBehind(facts, one))) return { holds: false, found: described };
    if (seen.length < list.length) return unknown('standbys are hidden');
    if (waits && !seen.some(({ synchronous }) => synchronous)) {
      const found = `commits wait: no standby is synchronous, synchronous_standby_names = ${excerpt(names, 100)}`;
      return { holds: false, found };
    }
    return { holds: true, found: described };
  });
}

/** Longer than any transaction of the service. */
const longestOpenS = 900;

function openTransactions({ transactions }: PostgresFacts): FactResult {
  return ifKnown(transactions, ({ list, isPartial }) => {
    const found = firstFew(
      list.map(({ what, age }) => `${excerpt(what, 80)} has been idle for ${Math.round(age)} s`),
    );
    if (list.some(({ age }) => age > longestOpenS)) return { holds: false, found };
    if (isPartial) return unknown('sessions of other roles are hidden');
    return { holds: true, found: found || 'no transaction is idle' };
  });
}

/** Longer than the service keeps a lock. */
const longestBlockS = 30;

/** Checks for sessions that make other sessions wait for a lock. The blocker with the oldest transaction comes first. */
function lockWaits({ blockers, transactions }: PostgresFacts): FactResult {
  return ifKnown(blockers, ({ list }) => {
    const isLong = ({ age }: Blocker) => age === null || age > longestBlockS;
    const described = list.map(({ what, age }) =>
      age === null ? excerpt(what, 80) : `${excerpt(what, 80)}, for ${Math.round(age)} s`,
    );
    const waiting = list[0]?.waiting ?? 0;
    const waits = waiting === 1 ? '1 session waits' : `${waiting} sessions wait`;
    const found = `${waits} for a lock of ${firstFew(described)}`;
    const long = list.filter(isLong);
    if (long.length > 0)
      return { holds: false, found, lastsS: Math.max(...long.map(({ waited }) => waited)) };
    if ('unknown' in transactions || transactions.isPartial)
      return unknown('sessions of other roles are hidden');
    return { holds: true, found: list.length === 0 ? 'no session blocks others' : found };
  });
}

/** A record may begin after the header of the segment's first page (XLogLongPageHeaderData). */
const segmentHeaderBytes = 40n;
/** The size of the record that lists the running transactions when there are none (xl_running_xacts). */
const emptyListBytes = 56n;

/**
 * How far WAL is archived. `pg_stat_archiver` names the last file, which is the newest segment unless it belongs to a base
 * backup; in that case, if nothing waits, the newest archived segment is the segment before the current one.
 */
export function logState(facts: PostgresFacts): LogState | undefined {
  const { lsn, timeline, archiver, backlog, settings } = facts;
  if ('unknown' in archiver || archiver.archivedWal === null) return undefined;
  const { archivedWal, failing } = archiver;
  const segmentBytes = BigInt(Math.trunc(Number(settings.wal_segment_size)) || 0);
  const isPossible = segmentBytes >= 2n ** 20n && segmentBytes <= 2n ** 30n && Number.isInteger(timeline);
  if (
    lsn === undefined ||
    timeline === undefined ||
    !isPossible ||
    !/^[0-9A-F]{1,8}\/[0-9A-F]{1,8}$/.test(lsn)
  )
    return plainWal.test(archivedWal) ? { archived: archivedWal, isArchivedWhole: false } : undefined;
  const [high, low] = lsn.split('/').map((hex) => BigInt(`0x${hex}`)) as [bigint, bigint];
  const position = (high << 32n) + low;
  const current = position / segmentBytes;
  const before = walName(timeline, current - 1n, segmentBytes);
  const isQuiet = !('unknown' in backlog) && backlog.waiting === 0 && !failing;
  const isOfBackup = archivedWal.endsWith('.backup') && archivedWal.slice(0, 8) === before.slice(0, 8);
  const archived = isOfBackup && isQuiet ? before : archivedWal;
  const isOldArchived = archived === before;
  const inCurrent = position % segmentBytes;
  return {
    ...(plainWal.test(archived) && { archived }),
    ...(archiver.archivedAtS !== undefined && { archivedAtMs: archiver.archivedAtS * 1000 }),
    position: lsn,
    timeline,
    isArchivedWhole: isOldArchived && inCurrent <= segmentHeaderBytes,
    ...(isOldArchived && isQuiet && closingOf(facts, inCurrent)),
  };
}

/** The background writer is late by no more than this. */
const writerLateMs = 30_000;
/** LOG_SNAPSHOT_INTERVAL_MS and HIBERNATE_FACTOR of the background writer. */
const [listedAfterMs, hibernatedTimes] = [15_000, 50];
/** A count of the statistics collector (before version 15) is older than the moment of the poll by less than this. */
const countLateMs = 5_000;

/**
 * What shows that the current segment has nothing of importance, although it is not empty. The first proof: the background writer
 * adds a list of the running transactions after anything of importance, and the content of the segment is so short that it can
 * only be such a list. The second proof: the checkpointer has run since. It closes a segment with anything of importance that is
 * older than archive_timeout. It counts a run in every checkpoint_timeout, even if it has nothing to do, so the count of a
 * checkpointer that hangs proves nothing.
 */
function closingOf(
  { settings, passes }: PostgresFacts,
  inCurrent: bigint,
): Pick<LogState, 'empties' | 'closes'> {
  const delayMs = Number(settings.bgwriter_delay ?? Number.NaN);
  const timeoutMs = 1000 * Number(settings.archive_timeout ?? 0);
  return {
    ...(inCurrent <= segmentHeaderBytes + emptyListBytes &&
      Number.isFinite(delayMs) && {
        empties: { afterMs: listedAfterMs + (hibernatedTimes + 1) * delayMs + writerLateMs },
      }),
    ...(timeoutMs > 0 && passes !== undefined && { closes: { afterMs: timeoutMs + countLateMs, passes } }),
  };
}

const plainWal = /^[0-9A-F]{24}$/;

function walName(timeline: number, segment: bigint, segmentBytes: bigint): string {
  const perId = (1n << 32n) / segmentBytes;
  return [BigInt(timeline), segment / perId, segment % perId]
    .map((part) => part.toString(16).toUpperCase().padStart(8, '0'))
    .join('');
}

function wraparound(facts: PostgresFacts): FactResult {
  return ifKnown(facts.wraparound, ({ age }) => ({
    holds: age < oldestTransactionAge,
    found: `the oldest transaction is ${age} transactions old`,
  }));
}

const checks: Readonly<Partial<Record<StoreCheck, (facts: PostgresFacts) => FactResult | undefined>>> = {
  archive_mode: archiveMode,
  archive_timeout: archiveTimeout,
  archiver,
  wal_backlog: walBacklog,
  wal_level: (facts) => setting(facts, 'wal_level', (level) => level === 'replica' || level === 'logical'),
  slots,
  data_checksums: (facts) => setting(facts, 'data_checksums', (value) => value === 'on'),
  durable_settings: durableSettings,
  standbys,
  open_transactions: openTransactions,
  lock_waits: lockWaits,
  wraparound,
};

/** The checks of a server according to its answers. A check that does not apply to the server has no result. */
export function postgresChecks(facts: PostgresFacts): CheckResult[] {
  return Object.entries(checks).flatMap(([check, assess]) => {
    const result = assess(facts);
    return result === undefined ? [] : [{ check: check as StoreCheck, ...result }];
  });
}
