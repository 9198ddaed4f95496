import {
  type BackupFailureReason,
  type BackupType,
  type StoreCheckSeverity,
  storeCheckNeededBy,
} from '../core/reasons.ts';
import type { ProbeStatus, Problem, ProblemSeverity, StatusFacts, Verdict } from './admin/report.ts';

type ProblemRow = readonly [ProblemSeverity, noun: string, predicate: string, runbook: string];

/**
 * Every kind of problem, in the order in which they are shown. Stores come before roles, because a store that is down
 * takes the roles with it. Severities are those of the recommended alerts. `is|are` in a predicate is the singular
 * and the plural.
 */
const kinds = {
  store_down: ['critical', 'store', 'is|are down', 'SvcStoreDown'],
  schema: ['critical', 'database', 'has|have the wrong schema', 'SvcSchemaMismatch'],
  role_down: ['critical', 'role', 'is|are down', 'SvcRoleUnhealthy'],
  cluster_down: ['critical', 'cluster', 'is|are unreachable', 'SvcClusterUnreachable'],
  read_only: ['critical', 'store', 'refuses|refuse writes', 'SvcStoreReadOnly'],
  data_at_risk: ['critical', 'store', 'puts|put data at risk', 'SvcStoreDataAtRisk'],
  disagreement: ['critical', 'domain', 'differs|differ between clusters', 'SvcDomainDisagreement'],
  replication_lag: ['critical', 'replication', 'lags|lag behind', 'SvcReplicationLag'],
  recovery: [
    'critical',
    'database',
    'cannot be recovered within its|their objectives',
    'SvcRecoveryObjectiveMissed',
  ],
  backup_missing: ['critical', 'backup', 'has|have never succeeded', 'SvcBackupNeverSucceeded'],
  backup_late: ['critical', 'backup', 'is|are late', 'SvcBackupAge'],
  backup_damaged: ['critical', 'backup', 'is|are damaged', 'SvcBackupIntegrity'],
  backup_failed: ['warning', 'backup', 'failed', 'SvcBackupFailures'],
  backup_offsite: ['warning', 'backup', 'has|have no off-site copy', 'SvcBackupOffsiteAge'],
  backup_retention: ['warning', 'backup', 'breaks|break its|their retention', 'SvcBackupRetention'],
  role_failing: ['warning', 'role', 'failed a health check', 'SvcHealthFailing'],
  scrape_down: ['warning', 'role', 'cannot be scraped', 'SvcInstanceDown'],
  recovery_weak: ['warning', 'store', 'has|have settings that weaken recovery', 'SvcStoreRecoveryWeak'],
  connections: ['warning', 'store', 'is|are short of connections', 'SvcStoreConnections'],
  failover: ['warning', 'domain', 'cannot fail over', 'SvcDomainTooFewClusters'],
  domain: ['warning', 'domain', 'cannot be read', 'SvcProbeStale'],
  replication: ['warning', 'replication', 'cannot be read', 'SvcReplicationLagUnknown'],
  archive_down: ['warning', 'archive', 'cannot be used', 'SvcArchiveDown'],
  certificate: ['warning', 'certificate', 'expires|expire soon', 'SvcCertificateExpiring'],
  flapping: ['warning', 'target', 'is|are flapping', 'SvcHealthFailing'],
  stale: ['warning', 'probe', 'has|have no new result|results', 'SvcProbeStale'],
  log_unread: ['warning', 'log file', 'is|are not read', 'SvcLogSilent'],
  log_lag: ['warning', 'log file', 'is|are read late', 'SvcLogLag'],
  state: ['warning', 'the state', 'cannot be written', 'SvcAgentStateDegraded'],
  reload: ['warning', 'the new configuration', 'was refused', 'SvcAgentReloadFailed'],
  report: ['warning', 'reporter', 'cannot deliver', 'SvcAgentReportFailing'],
} as const satisfies Readonly<Record<string, ProblemRow>>;
type KindOfProblem = keyof typeof kinds;

/** A predicate of `kinds` in the singular or the plural. */
const inNumber = (predicate: string, isPlural: boolean): string =>
  predicate.replace(/(\w+)\|(\w+)/g, isPlural ? '$2' : '$1');

interface FoundProblem extends Pick<Problem, 'since' | 'fix'> {
  kind: KindOfProblem;
  /** The subject; empty if the noun is enough. */
  subject: string;
  detail?: string;
}

/** Behind by more than this is a problem, as the recommended alerts have it. */
const mostLogLagBytes = 64 << 20;
const mostReplicationLagSeconds = 300;
const certificateWarningMs = 14 * 86_400_000;

const subjectOf = ({ name }: Pick<ProbeStatus, 'name'>) => name.slice(name.indexOf('/') + 1);
/** The reason and the message, less a reason that the message repeats. */
export function reasonOf({ last }: Pick<ProbeStatus, 'last'>): string {
  const reason = last?.reason?.replaceAll('_', ' ') ?? '';
  const msg = last?.msg ?? '';
  return msg.toLowerCase().includes(reason) ? msg : [reason, msg].filter(Boolean).join(': ');
}

/** The noun for a failing target, by the kind of its probe. */
const downKinds: Readonly<Record<string, KindOfProblem>> = {
  health: 'role_down',
  store: 'store_down',
  cluster: 'cluster_down',
  domain: 'domain',
  replication: 'replication',
  archive: 'archive_down',
  backup: 'backup_failed',
  recovery: 'recovery',
  rehearsal: 'recovery',
};

const backupKinds: Partial<Record<BackupFailureReason, KindOfProblem>> = {
  no_backup: 'backup_missing',
  late: 'backup_late',
  incomplete: 'backup_damaged',
  corrupt: 'backup_damaged',
  shrunken: 'backup_damaged',
  log_gap: 'backup_damaged',
  chain_broken: 'backup_damaged',
  offsite_missing: 'backup_offsite',
  retention: 'backup_retention',
  snapshot_not_cleared: 'backup_retention',
};

function failingKind({ kind, last }: ProbeStatus): KindOfProblem {
  if (kind === 'backup') return backupKinds[last?.reason as BackupFailureReason] ?? 'backup_failed';
  const disagrees = last?.reason === 'clusters_disagree' || last?.reason === 'version_mismatch';
  return kind === 'domain' && disagrees ? 'disagreement' : (downKinds[kind] ?? 'stale');
}

/** A check of a store, as `details.checks` has it. */
interface StoreCheckResult {
  check: string;
  holds: boolean | 'unknown';
  found: string;
  severity: StoreCheckSeverity;
  accepted?: string;
  set?: string;
}

/** The stores of which there are backups, as `STORE TYPE`. */
type BackedUp = ReadonlySet<string>;

const backedUpIn = (probes: readonly ProbeStatus[]): BackedUp =>
  new Set(
    probes
      .filter(({ kind }) => kind === 'backup')
      .map(({ last }) => `${last?.details?.store} ${last?.details?.type}`),
  );

const neededBy: Readonly<Record<string, BackupType>> = storeCheckNeededBy;

function storeProblems(probe: ProbeStatus, backedUp: BackedUp): FoundProblem[] {
  const [, store] = probe.name.split('/');
  const details = probe.last?.details ?? {};
  const since = probe.last?.at;
  const subject = subjectOf(probe);
  const checks = (details.checks ?? []) as readonly StoreCheckResult[];
  const failing = checks.filter(({ holds, accepted }) => holds === false && accepted === undefined);
  const found = failing.flatMap(({ check, severity, found: detail, set: fix }): FoundProblem[] => {
    const needed = neededBy[check];
    // As with the alert: without such backups the setting is the owner's decision.
    const isDecision = needed !== undefined && !backedUp.has(`${store} ${needed}`);
    const advised = severity === 'advice' || isDecision ? undefined : severity;
    const kind = check === 'schema' || check === 'connections' ? check : advised;
    return kind ? [{ kind, subject, detail: `${check}: ${detail}`, fix }] : [];
  });
  if (details.readOnly === true && details.replica !== true)
    found.push({ kind: 'read_only', subject, since, detail: 'the server is set to read only' });
  return found;
}

function domainProblems(probe: ProbeStatus): FoundProblem[] {
  const readiness = probe.last?.details?.failover as { ready?: boolean; why?: string } | undefined;
  return readiness?.ready === false
    ? [{ kind: 'failover', subject: subjectOf(probe), detail: readiness.why }]
    : [];
}

function probeProblems(probe: ProbeStatus, backedUp: BackedUp, nowMs: number): FoundProblem[] {
  const { kind, state, last, since, flapping, intervalMs, timeoutMs } = probe;
  const subject = subjectOf(probe);
  if (!last) return [];
  if (nowMs - Date.parse(last.at) > 3 * intervalMs + timeoutMs)
    return [{ kind: 'stale', subject: probe.name, since: last.at, detail: `the last one is of ${last.at}` }];
  if (!last.ok) {
    const isDown = state === 'down';
    // A role has thresholds: one failed check is not an outage.
    const failing = kind === 'health' && !isDown ? 'role_failing' : failingKind(probe);
    return [{ kind: failing, subject, detail: reasonOf(probe), since: isDown ? since : last.at }];
  }
  return [
    ...(flapping ? [{ kind: 'flapping', subject: probe.name } satisfies FoundProblem] : []),
    ...(kind === 'store' ? storeProblems(probe, backedUp) : []),
    ...(kind === 'domain' ? domainProblems(probe) : []),
  ];
}

function roleProblems({ scrapes, probes }: StatusFacts): FoundProblem[] {
  const isChecked = (service: string) =>
    probes.some(({ name, last }) => name === `health/${service}` && last && !last.ok);
  return scrapes.flatMap(({ service, up, lastFailure, lastTakenMs }): FoundProblem[] => {
    if (up || !lastFailure || isChecked(service)) return [];
    const since = new Date(lastTakenMs ?? lastFailure.atMs).toISOString();
    return [
      { kind: 'scrape_down', subject: service, detail: `${lastFailure.reason}: ${lastFailure.what}`, since },
    ];
  });
}

function logProblems({ logs }: StatusFacts): FoundProblem[] {
  return logs.flatMap(({ path, state, lagBytes }): FoundProblem[] => {
    if (state !== 'following' && state !== 'missing' && !state.startsWith('not read: '))
      return [{ kind: 'log_unread', subject: path, detail: state }];
    if (lagBytes <= mostLogLagBytes) return [];
    return [{ kind: 'log_lag', subject: path, detail: `${Math.round(lagBytes / 2 ** 20)} MiB behind` }];
  });
}

function agentProblems({ state, config, reporters }: StatusFacts): FoundProblem[] {
  const found: FoundProblem[] = [];
  if (state.degraded !== undefined)
    found.push({ kind: 'state', subject: '', detail: state.degraded, since: state.lastCommitAt });
  if (!config.lastReloadSuccessful)
    found.push({ kind: 'reload', subject: '', detail: config.lastReloadError });
  for (const { block, kind, failingSince, lastFailure } of reporters)
    if (failingSince !== undefined)
      found.push({
        kind: 'report',
        subject: `${block}.${kind}`,
        detail: lastFailure?.reason,
        since: failingSince,
      });
  return found;
}

function measuredProblems({ replication, certificates }: StatusFacts, nowMs: number): FoundProblem[] {
  return [
    ...replication
      .filter(({ lagSeconds }) => lagSeconds > mostReplicationLagSeconds)
      .map(({ source, target, lagSeconds }): FoundProblem => {
        const detail = `${Math.round(lagSeconds)} s behind`;
        return { kind: 'replication_lag', subject: `${source} to ${target}`, detail };
      }),
    ...certificates
      .filter(({ notAfter }) => Date.parse(notAfter) - nowMs < certificateWarningMs)
      .map(
        ({ probe, notAfter }): FoundProblem => ({
          kind: 'certificate',
          subject: probe,
          detail: `on ${notAfter}`,
        }),
      ),
  ];
}

const order = Object.keys(kinds) as KindOfProblem[];
const rank = ({ kind }: FoundProblem) =>
  (kinds[kind][0] === 'critical' ? 0 : order.length) + order.indexOf(kind);

function problemOf({ kind, subject, detail, fix, since }: FoundProblem): Problem {
  const [severity, noun, predicate, runbook] = kinds[kind];
  const clause = [noun, subject, inNumber(predicate, false)].filter(Boolean).join(' ');
  const id = `${kind}/${subject}`;
  return { id, severity, what: detail ? `${clause}: ${detail}` : clause, fix, since, runbook };
}

const listed = (items: readonly string[]): string =>
  items.length < 2 ? (items[0] ?? '') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;

const plural = (noun: string, count: number): string => {
  if (count === 1 || noun === 'replication') return noun;
  return noun.endsWith('y') ? `${noun.slice(0, -1)}ies` : `${noun}s`;
};

/** At most four are named, to keep the sentence short. */
const mostNamed = 4;
const longestName = 60;

function clauseOf(kind: KindOfProblem, found: readonly FoundProblem[]): string {
  const [, noun, predicate] = kinds[kind];
  // Databases of one store that is down are one store.
  const isStore = noun === 'store';
  const names = [...new Set(found.map(({ subject }) => (isStore ? subject.split('/')[0]! : subject)))];
  if (names[0] === '') return `${noun} ${inNumber(predicate, false)}`;
  const verb = inNumber(predicate, names.length > 1);
  const isShort = names.length <= mostNamed && names.every(({ length }) => length <= longestName);
  return isShort
    ? `${plural(noun, names.length)} ${listed(names)} ${verb}`
    : `${names.length} ${plural(noun, names.length)} ${verb}`;
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Clauses of the most severe problems; the others are counted. */
const mostClauses = 3;

function byKind(found: readonly FoundProblem[]): Map<KindOfProblem, FoundProblem[]> {
  const groups = new Map<KindOfProblem, FoundProblem[]>();
  for (const one of found) {
    const known = groups.get(one.kind);
    if (known) known.push(one);
    else groups.set(one.kind, [one]);
  }
  return groups;
}

function headlineOf(found: readonly FoundProblem[]): string {
  const worst = kinds[found[0]!.kind][0];
  const groups = [...byKind(found)];
  const shown = groups.filter(([kind]) => kinds[kind][0] === worst).slice(0, mostClauses);
  const rest = found.length - shown.reduce((sum, [, members]) => sum + members.length, 0);
  const more = rest > 0 ? [`${rest} more ${plural('problem', rest)}`] : [];
  return capital(listed([...shown.map(([kind, members]) => clauseOf(kind, members)), ...more]));
}

/** What the sentence counts, by the kind of the probe. */
const counted: Readonly<Record<string, string>> = {
  health: 'role',
  store: 'store',
  cluster: 'cluster',
  domain: 'domain',
  archive: 'archive',
  backup: 'backup',
};

/** What is watched, as a list with numbers. */
function watched({ probes, scrapes, statsd, logs }: StatusFacts): string[] {
  const roles = new Set([...scrapes, ...statsd].map(({ service }) => service));
  const counts = new Map([['role', roles]]);
  for (const probe of probes) {
    const noun = counted[probe.kind];
    if (noun === undefined) continue;
    const subject = probe.kind === 'store' ? subjectOf(probe).split('/')[0]! : subjectOf(probe);
    counts.set(noun, (counts.get(noun) ?? new Set()).add(subject));
  }
  counts.set('log file', new Set(logs.map(({ path }) => path)));
  return [...counts].flatMap(([noun, { size }]) => (size > 0 ? [`${size} ${plural(noun, size)}`] : []));
}

function verdictWithoutProblems(facts: StatusFacts): Pick<Verdict, 'level' | 'headline'> {
  const all = watched(facts);
  if (!facts.ready) return { level: 'unknown', headline: 'The agent is starting' };
  if (all.length === 0)
    return {
      level: 'unknown',
      headline: 'Nothing is watched: the configuration names no role, store or log',
    };
  const pending = [
    ...facts.probes.filter(({ last }) => !last),
    ...facts.scrapes.filter(({ up, lastFailure }) => !up && !lastFailure),
  ].length;
  const checks = facts.probes.length + facts.scrapes.length;
  if (pending > 0)
    return {
      level: 'unknown',
      headline: `Nothing is wrong so far; ${pending} of ${checks} checks have no result yet`,
    };
  return { level: 'ok', headline: `All is well: ${listed(all)}` };
}

/** `2026-01-01T00:00:00.000Z` as `2026-01-01 00:00 UTC`. */
const minuteOf = (time: string) => `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;

/** Whether everything that an agent watches is well, and if not what is wrong, since when, and what to do. Pure. */
export function verdictOf(facts: StatusFacts, nowMs: number): Verdict {
  const backedUp = backedUpIn(facts.probes);
  const found = [
    ...facts.probes.flatMap((probe) => probeProblems(probe, backedUp, nowMs)),
    ...roleProblems(facts),
    ...measuredProblems(facts, nowMs),
    ...logProblems(facts),
    ...agentProblems(facts),
  ].sort((a, b) => rank(a) - rank(b));
  if (found.length === 0) {
    const { level, headline } = verdictWithoutProblems(facts);
    return { ok: level === 'ok', level, headline, sentence: `${headline}.`, problems: [] };
  }
  const problems = found.map(problemOf);
  const level = problems[0]!.severity;
  const headline = headlineOf(found);
  const starts = problems.filter((problem) => problem.severity === level).flatMap(({ since }) => since ?? []);
  const since = starts.sort()[0];
  const sentence = since === undefined ? `${headline}.` : `${headline}, since ${minuteOf(since)}.`;
  return { ok: false, level, headline, sentence, problems };
}
