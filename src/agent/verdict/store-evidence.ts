import { type StoreCheck, type StoreCheckSeverity, storeCheckNeededBy } from '../../core/check-severity.ts';
import type { BackupType } from '../../core/reasons.ts';
import type { Evidence, ProbeStatus } from '../report.ts';
import type { Found } from './found.ts';
import type { KindOfProblem } from './kinds.ts';

/** One check of a store, as in `details.checks`. */
interface StoreCheckResult {
  check: StoreCheck;
  holds: boolean | 'unknown';
  found: string;
  /** Since when the check fails, RFC 3339. */
  since?: string;
  severity: StoreCheckSeverity;
  accepted?: string;
  set?: string;
}

/** The stores that have backups, as `STORE TYPE`. */
export type BackedUp = ReadonlySet<string>;

export const backedUpIn = (probes: readonly ProbeStatus[]): BackedUp =>
  new Set(
    probes
      .filter(({ kind }) => kind === 'backup')
      .map(({ last }) => `${last?.details?.store} ${last?.details?.type}`),
  );

/** The checks of a store in a result of its probe. */
const checksIn = ({ last }: Pick<ProbeStatus, 'last'>): readonly StoreCheckResult[] =>
  (last?.details?.checks ?? []) as readonly StoreCheckResult[];

/** The name of the source (`unread.ts`) of what one check of a store shows. */
export const checkSource = (probe: string, check: StoreCheck): string => `check/${probe} ${check}`;

/** Whether a source of this name, without its kind, can be read: a check for which the rights do not suffice says nothing. */
export function isCheckRead(of: string, probeNamed: (name: string) => ProbeStatus | undefined): boolean {
  const end = of.lastIndexOf(' ');
  const probe = probeNamed(of.slice(0, end));
  return !(
    probe && checksIn(probe).some(({ check, holds }) => check === of.slice(end + 1) && holds === 'unknown')
  );
}

const neededBy: Readonly<Partial<Record<StoreCheck, BackupType>>> = storeCheckNeededBy;
/** The kinds of the problems that failed checks of a store show. */
const checkKinds: Readonly<Partial<Record<StoreCheck, KindOfProblem>>> = {
  schema: 'schema',
  connections: 'connections',
  lock_waits: 'locks',
  free_space: 'disk_full',
};

/** What a store does while a check fails. The predicate of a kind says it for the other checks. */
const predicates: Readonly<Partial<Record<StoreCheck, string>>> = {
  identity: 'was|were replaced by another server',
  checksum_failures: 'has|have damaged pages',
  durable_settings: 'can lose commits',
  wraparound: 'is|are running out of transaction ids',
  flush_log_at_commit: 'can lose commits',
  durable_writes: 'can lose writes',
  storage_engine: 'has|have tables without transactions',
  archive_mode: 'does|do not archive a log',
  archive_timeout: 'archives|archive too rarely',
  archiver: 'cannot archive the log',
  wal_backlog: 'archives|archive the log too late',
  wal_archive: 'has|have a gap in the archived log',
  slots: 'keeps|keep too much log for a slot',
  timeline: 'was|were promoted or restored',
  replica: 'does|do not keep up as a replica',
  standbys: 'has|have a standby that lags or is missing',
  open_transactions: 'has|have a transaction that stays open',
  log_bin: 'writes|write no binary log',
  sync_binlog: 'can lose the end of the binary log',
  binlog_retention: 'purges|purge the binary log too early',
  incremental_backups: 'writes|write no incremental backups',
  schema_agreement: 'has|have nodes with different schemas',
  nodes: 'has|have nodes that are down',
};

const unreadSteps =
  'Check the rights of the agent’s account (svc-agent probe --print-grants), and what stores[].schema says: version, query, command.';

/** The problem that one check of a store shows; undefined if it shows none. */
function checkProblem(one: StoreCheckResult, common: Common, backedUp: BackedUp): Found | undefined {
  const { check, holds, severity, found: what, set: fix, since } = one;
  const { subject, about, probe } = common;
  const isUnreadSchema = check === 'schema' && holds === 'unknown';
  const needed = neededBy[check];
  // As in the alert, the setting is the owner's decision if there are no such backups.
  const isDecision = needed !== undefined && !backedUp.has(`${about.store} ${needed}`);
  const advised = severity === 'advice' || isDecision ? undefined : severity;
  const kind = isUnreadSchema
    ? 'schema_unread'
    : holds === false
      ? (checkKinds[check] ?? advised)
      : undefined;
  if (one.accepted !== undefined || kind === undefined) return undefined;
  const detail = isUnreadSchema ? what : `${check}: ${what}`;
  const evidence: Evidence[] = [
    { source: 'probe', text: `${probe.name}: ${check}: ${what}`, at: probe.last.at },
  ];
  return {
    ...{ kind, subject, about, detail, evidence, line: `${kind}/${subject}/${check}` },
    sinceMs: Date.parse(since ?? probe.last.at),
    ...(isUnreadSchema
      ? { firstSteps: unreadSteps }
      : { fix, predicate: predicates[check], from: [checkSource(probe.name, check)] }),
  };
}

type Common = Pick<Found, 'subject' | 'about'> & {
  probe: ProbeStatus & { last: NonNullable<ProbeStatus['last']> };
};

/** The problems that a poll of a store shows. */
export function storeProblems(common: Common, backedUp: BackedUp): Found[] {
  const { subject, about, probe } = common;
  const { details = {}, at, msg } = probe.last;
  const found = checksIn(probe).flatMap((one) => checkProblem(one, common, backedUp) ?? []);
  if (details.readOnly !== true || details.replica === true) return found;
  return [
    ...found,
    {
      ...{ kind: 'read_only', subject, about },
      sinceMs: Date.parse((details.readOnlySince as string | undefined) ?? at),
      detail: 'it is set to read only',
      evidence: [{ source: 'probe', text: `${probe.name}: ${msg}`, at }],
    },
  ];
}
