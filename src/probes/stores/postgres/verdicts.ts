import type { StoreCheck } from '../../../core/reasons.ts';
import type { StoreVerdict } from '../store.ts';
import type { Facts, Known, Slot } from './facts.ts';

/** The spec's objective for the log: what is not elsewhere by then is lost with the server. */
const longestUnarchivedS = 300;
/** Half of what there is before the server stops to protect itself. */
const oldestTransactionAge = 1_000_000_000;
const shownAtMost = 3;

type Judgement = Omit<StoreVerdict, 'check'>;
type Judge = (facts: Facts) => Judgement | undefined;

const unknown = (found: string): Judgement => ({ holds: 'unknown', found });

function judged<T extends object>(part: Known<T>, judge: (part: T) => Judgement): Judgement {
  return 'unknown' in part ? unknown((part as { unknown: string }).unknown) : judge(part as T);
}

/** The verdict on one setting, as `name = value`. */
function setting({ settings }: Facts, name: string, isRight: (value: string) => boolean): Judgement {
  const value = settings[name];
  if (value === undefined) return unknown(`${name} is not shown`);
  return { holds: isRight(value), found: `${name} = ${value}` };
}

function some(names: readonly string[]): string {
  const more = names.length - shownAtMost;
  return names.slice(0, shownAtMost).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** Whether the server itself hands over its log: a standby does so only if it is told `always`. */
export function archives({ standby, settings: { archive_mode: mode } }: Facts): boolean {
  return mode === 'always' || (mode === 'on' && !standby);
}

/** Who else takes the log away while it is written: a slot in use, or pg_receivewal. */
function streamedBy({ slots, senders }: Facts): string | undefined {
  const slot = 'unknown' in slots ? undefined : slots.list.find(({ active }) => active);
  if (slot) return `slot ${slot.name} streams the log`;
  const receives = !('unknown' in senders) && senders.applications.includes('pg_receivewal');
  return receives ? 'pg_receivewal streams the log' : undefined;
}

function archiveMode(facts: Facts): Judgement {
  const { archive_mode: mode, archive_command: command, archive_library: library } = facts.settings;
  if (mode === undefined) return unknown('archive_mode is not shown');
  const isEmpty = mode !== 'off' && (command ?? '') === '' && (library ?? '') === '';
  const found = `archive_mode = ${mode}${isEmpty ? ', archive_command is empty' : ''}`;
  if (mode !== 'off' && !isEmpty) return { holds: true, found };
  const streamed = streamedBy(facts);
  if (streamed) return { holds: true, found: `${found}, but ${streamed}` };
  const isHidden = 'unknown' in facts.senders || facts.senders.applications.includes(null);
  return isHidden ? unknown(`${found}, and who is sent the log is not shown`) : { holds: false, found };
}

function archiveTimeout(facts: Facts): Judgement {
  const verdict = setting(facts, 'archive_timeout', (value) => +value > 0 && +value <= longestUnarchivedS);
  const streamed = facts.settings.archive_mode === 'off' ? streamedBy(facts) : undefined;
  return streamed ? { holds: true, found: `${verdict.found}, but ${streamed}` } : verdict;
}

function archiver(facts: Facts): Judgement | undefined {
  if (!archives(facts)) return undefined;
  return judged(facts.archiver, ({ failing, failures, failedWal }) => ({
    holds: !failing,
    found: failing
      ? `${failedWal} was not archived, ${failures} failures in all`
      : `${failures} failures in all`,
  }));
}

function walBacklog(facts: Facts): Judgement | undefined {
  if (!archives(facts)) return undefined;
  return judged(facts.backlog, ({ waiting, ageS }) => ({
    holds: ageS <= longestUnarchivedS,
    found: waiting === 0 ? 'nothing waits' : `${waiting} segments wait, the oldest for ${Math.round(ageS)} s`,
  }));
}

function slots(facts: Facts): Judgement {
  const fault = ({ active, status }: Slot) =>
    status === 'lost' || status === 'unreserved' ? status : active ? undefined : 'inactive';
  return judged(facts.slots, ({ list }) => {
    const bad = list.flatMap((slot) => (fault(slot) ? [`${slot.name} ${fault(slot)}`] : []));
    const well = list.length === 0 ? 'no slots' : `${list.length} slots, all in use`;
    return { holds: bad.length === 0, found: bad.length > 0 ? some(bad) : well };
  });
}

function durableSettings({ settings }: Facts): Judgement {
  const names = ['fsync', 'full_page_writes', 'synchronous_commit'];
  if (names.some((name) => settings[name] === undefined)) return unknown('the settings are not shown');
  const off = names.filter((name) => settings[name] === 'off');
  return {
    holds: off.length === 0,
    found: (off.length > 0 ? off : names).map((name) => `${name} = ${settings[name]}`).join(', '),
  };
}

function checksumFailures(facts: Facts): Judgement {
  return judged(facts.checksums, ({ failures }) =>
    failures === null
      ? unknown('data_checksums is off')
      : { holds: failures === 0, found: `${failures} pages failed` },
  );
}

function replica(facts: Facts): Judgement | undefined {
  if (!facts.standby) return undefined;
  return judged(facts.receiver, ({ receivers, paused, lagS }) => {
    if (receivers === 0) return { holds: false, found: 'no receiver: nothing streams in' };
    if (paused) return { holds: false, found: 'replay is paused' };
    if (lagS === null) return unknown('nothing was replayed yet');
    return { holds: lagS <= longestUnarchivedS, found: `${Math.round(lagS)} s behind` };
  });
}

function wraparound(facts: Facts): Judgement {
  return judged(facts.wraparound, ({ age }) => ({
    holds: age < oldestTransactionAge,
    found: `the oldest transaction is ${age} transactions old`,
  }));
}

const judges: Readonly<Partial<Record<StoreCheck, Judge>>> = {
  archive_mode: archiveMode,
  archive_timeout: archiveTimeout,
  archiver,
  wal_backlog: walBacklog,
  wal_level: (facts) => setting(facts, 'wal_level', (level) => level === 'replica' || level === 'logical'),
  slots,
  data_checksums: (facts) => setting(facts, 'data_checksums', (value) => value === 'on'),
  checksum_failures: checksumFailures,
  durable_settings: durableSettings,
  replica,
  wraparound,
};

/** The posture by what the server said; what does not apply to it has no verdict. */
export function verdictsOf(facts: Facts): StoreVerdict[] {
  return Object.entries(judges).flatMap(([check, judge]) => {
    const judgement = judge(facts);
    return judgement === undefined ? [] : [{ check: check as StoreCheck, ...judgement }];
  });
}
