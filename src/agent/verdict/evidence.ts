import { dirname } from 'node:path';
import type { BackupFailureReason } from '../../core/reasons.ts';
import type { Evidence, LogFaultReport, ProbeStatus, StatusFacts } from '../report.ts';
import { agentProblems, expiryOf } from './agent-evidence.ts';
import { isEarlyEnough } from './causes.ts';
import type { Found } from './found.ts';
import { alertNamed, firstStepsFor, type KindOfProblem, kinds, limitOf } from './kinds.ts';
import { isPassing, pageOf, probeNamed } from './named.ts';
import { downKinds, failoverOf, messageOf, phaseOf, reasonOf, subjectOf } from './probe-text.ts';
import { type BackedUp, backedUpIn, storeProblems } from './store-evidence.ts';
import { valueProblems, withLastWords } from './value-evidence.ts';

/** The status of a probe that has a result. */
type Checked = ProbeStatus & { last: NonNullable<ProbeStatus['last']> };
const isChecked = (probe: ProbeStatus): probe is Checked => probe.last !== undefined;

/** The store in a subject such as `STORE/DATABASE`. */
const storeOf = (subject: string): string => subject.split('/')[0]!;
const msOf = (time: string | undefined): number | undefined =>
  time === undefined ? undefined : Date.parse(time);

const backupKinds: Partial<Record<BackupFailureReason, KindOfProblem>> = {
  no_backup: 'backup_missing',
  directory_gone: 'backup_gone',
  late: 'backup_late',
  incomplete: 'backup_damaged',
  corrupt: 'backup_damaged',
  shrunken: 'backup_damaged',
  log_gap: 'backup_damaged',
  chain_broken: 'backup_damaged',
  offsite_missing: 'backup_offsite',
  retention: 'backup_retention',
  snapshot_not_cleared: 'backup_retention',
  evidence_unreadable: 'backup_unread',
  too_slow: 'backup_unread',
  failed: 'backup_unread',
};

function failingKind({ kind, last }: Checked): KindOfProblem {
  if (kind === 'backup') return backupKinds[last.reason as BackupFailureReason] ?? 'backup_failed';
  const disagrees = last.reason === 'clusters_disagree' || last.reason === 'version_mismatch';
  return kind === 'domain' && disagrees ? 'disagreement' : (downKinds[kind] ?? 'stale');
}

/** The predicates for stores and clusters whose reason says what they do instead of working. */
const predicates: Readonly<Record<string, string>> = {
  refused: 'refuses|refuse connections',
  unreachable: 'is|are unreachable',
  resolve: 'has|have no address',
  connect_timeout: 'does|do not answer',
  too_slow: 'does|do not answer',
  credentials: 'refuses|refuse the credentials',
  denied: 'denies|deny access to the agent',
  tls_expired: 'has|have an expired certificate',
  too_many_connections: 'has|have no connection left',
  database_missing: 'lacks|lack a database',
  starting: 'is|are starting',
  shutting_down: 'is|are shutting down',
  // A cluster that answers with one of these reasons was reached.
  not_ok: 'is|are unhealthy',
  not_in_ring: 'is|are unhealthy',
  persistence: 'cannot use its|their store',
  warming_up: 'is|are starting',
};
/** Reasons of a health check that say nothing about the role, which answers, but not to the agent. */
const uncheckable: ReadonlySet<string> = new Set(['credentials', 'tls_untrusted', 'tls_hostname']);
const saysMore: ReadonlySet<string> = new Set(['store', 'cluster']);
function predicateOf({ kind, state, last }: Checked): string | undefined {
  const { reason = '' } = last;
  if (kind === 'health' && state === 'down' && reason === 'persistence') return 'cannot use its|their store';
  if (kind === 'health' && uncheckable.has(reason)) return 'cannot be checked';
  return saysMore.has(kind) || reason === 'tls_expired' ? predicates[reason] : undefined;
}

/** The result of a probe as evidence. */
function probeEvidence(probe: Checked): Evidence {
  const { name, last } = probe;
  const phase = last.ok ? undefined : phaseOf(probe);
  const took = `${Math.round(last.durationMs)} ms`;
  const text = `${name}: ${reasonOf(probe)}${phase ? `, in phase ${phase.replaceAll('_', ' ')} after ${took}` : ''}`;
  return { source: 'probe', text, at: last.at };
}

/** What the problems of a probe are about. */
function aboutOf(checked: Checked): Found['about'] {
  const { name, kind, last } = checked;
  const subject = subjectOf(checked);
  const probe = { probe: name };
  const { details = {} } = last;
  switch (kind) {
    case 'health':
      return { ...probe, role: subject };
    case 'store':
    case 'recovery':
    case 'rehearsal':
      return { ...probe, store: storeOf(subject) };
    case 'backup':
      return { ...probe, ...(typeof details.store === 'string' && { store: details.store }) };
    case 'cluster':
      return { ...probe, clusters: [subject] };
    case 'domain':
      return { ...probe, domain: subject, clusters: (details.clusters ?? []) as string[] };
    case 'archive':
      return { ...probe, archive: subject };
    default:
      return probe;
  }
}

const standbySteps =
  'Check that a standby answers, describes the domain as the active cluster does, and is up to date. Do not fail over before.';

/**
 * The problems of a domain. A domain with only one cluster cannot fail over; that is its owner's decision, unless the group has
 * more clusters.
 */
function domainProblems(probe: Checked, clusterCount: number): Found[] {
  const { details = {} } = probe.last;
  const readiness = failoverOf(probe);
  if (readiness?.ready !== false || details.global === false) return [];
  const about = aboutOf(probe);
  if (Math.max(clusterCount, about.clusters!.length) < 2) return [];
  const detail = readiness.why;
  const sinceMs = msOf(probe.last.at);
  const evidence = [probeEvidence(probe)];
  // The steps of the alert are for a domain that no other cluster has.
  const firstSteps = about.clusters!.length < 2 ? undefined : standbySteps;
  return [{ kind: 'failover', subject: subjectOf(probe), about, sinceMs, detail, firstSteps, evidence }];
}

/** Kinds of probes whose failures are problems of several kinds, each with its own start. */
const hasKinds: ReadonlySet<string> = new Set(['backup', 'domain']);
const isDiskFull = /no space left|disk (?:is )?full|could not extend file|ENOSPC/i;

/** For a cluster that is down, the domains that are active in it, and what is known about their failover. */
function activeIn({ kind, ...cluster }: Checked, { probes }: StatusFacts): Evidence[] {
  if (kind !== 'cluster') return [];
  const name = subjectOf(cluster);
  const domains = probes.filter((one) => one.kind === 'domain' && one.last?.details?.activeCluster === name);
  const [first] = domains;
  if (!first) return [];
  const { ready, why } = failoverOf(first) ?? { ready: false, why: 'it is a local domain' };
  const one = domains.length === 1;
  const it = one ? 'it' : subjectOf(first);
  const can =
    ready === undefined
      ? `it is not known whether ${it} can fail over`
      : `${it} ${ready ? 'can' : 'cannot'} fail over`;
  const text = `${one ? `domain ${subjectOf(first)} is` : `${domains.length} domains are`} active in ${name}; ${can}: ${why}`;
  return [{ source: 'probe', text, at: first.last!.at }];
}

function failingProblems(probe: Checked, facts: StatusFacts): Found[] {
  const { kind, state, last, since, failingSince, name } = probe;
  const subject = subjectOf(probe);
  const about = aboutOf(probe);
  const isDown = state === 'down';
  // The health of a role has thresholds: one failed check is not an outage.
  const failing = kind === 'health' && !isDown ? 'role_failing' : failingKind(probe);
  // The clock may have been set back since then.
  const sinceMs = Math.min(msOf((isDown ? since : undefined) ?? failingSince) ?? Infinity, msOf(last.at)!);
  const { reason } = last;
  const evidence = [probeEvidence(probe), ...activeIn(probe, facts)];
  const firstSteps = firstStepsFor(reason, kind);
  const common = { subject, about, reason, firstSteps, sinceMs, evidence };
  const line = hasKinds.has(kind) ? `probe/${name} ${failing}` : `probe/${name}`;
  const predicate = predicateOf(probe);
  // A predicate already contains the reason, as the predicate of the kind does for backups that are late.
  const saysReason = predicate !== undefined || kinds[failing].predicate.endsWith(` ${reason}`);
  const detail = saysReason ? messageOf(last.msg) : reasonOf(probe);
  const found: Found = { ...common, kind: failing, detail, predicate, line };
  if (kind !== 'store' || !isDiskFull.test(last.msg)) return [found];
  return [{ ...common, kind: 'disk_full', predicate: 'is|are full', detail: last.msg }, found];
}

/** The first steps for a flapping target that is not a role. */
const flappingSteps =
  'Read the last failures of the probe: GET /probe?name=NAME&debug=1 on the admin listener lists them.';

/** What the problems of a probe depend on beside its own result. */
interface Others {
  facts: StatusFacts;
  nowMs: number;
  backedUp: BackedUp;
  clusterCount: number;
}

function probeProblems(probe: Checked, { facts, nowMs, backedUp, clusterCount }: Others): Found[] {
  const { kind, last, ageMs, flapping, intervalMs, timeoutMs, name } = probe;
  if ((ageMs ?? nowMs - Date.parse(last.at)) > 3 * intervalMs + timeoutMs) {
    const detail = `the newest is from ${last.at}`;
    return [
      {
        kind: 'stale',
        subject: name,
        about: aboutOf(probe),
        sinceMs: msOf(last.at),
        detail,
        evidence: [],
      },
    ];
  }
  // The disk of a store that is down is checked all the same.
  const ofStore =
    kind === 'store'
      ? storeProblems({ subject: subjectOf(probe), about: aboutOf(probe), probe }, backedUp)
      : [];
  if (!last.ok) {
    const isMeasured = ofStore.some((one) => one.kind === 'disk_full');
    const failing = failingProblems(probe, facts);
    return [...failing.filter((one) => !isMeasured || one.kind !== 'disk_full'), ...ofStore];
  }
  return [
    ...(flapping
      ? [
          {
            ...({ kind: 'flapping', subject: name, about: aboutOf(probe) } as const),
            ...(kind !== 'health' && { firstSteps: flappingSteps }),
            evidence: [probeEvidence(probe)],
          },
        ]
      : []),
    ...ofStore,
    ...(kind === 'domain' ? domainProblems(probe, clusterCount) : []),
  ];
}

/**
 * Whether the health check of a role passes, and passed before its page was lost, and the page was tried again after a check. A role
 * that crashes again and again may be gone between two checks.
 */
function isWellWithout(
  { service, failingSinceMs: lostMs = Number.POSITIVE_INFINITY, lastFailure }: StatusFacts['scrapes'][number],
  facts: StatusFacts,
): boolean {
  const health = probeNamed(facts, `health/${service}`);
  if (health?.last?.ok !== true) return false;
  const { last, since = '', intervalMs } = health;
  const triedMs = Math.min(Date.parse(last.at), lastFailure?.atMs ?? 0);
  return Date.parse(since) <= lostMs && triedMs >= lostMs + intervalMs;
}

/**
 * The pages that cannot be scraped. The page of a role that fails its health check is not listed as a problem, unless the page
 * failed earlier; nor is it listed after the role is back until it was scraped again.
 */
function scrapeProblems(facts: StatusFacts, ofProbes: readonly Found[]): Found[] {
  const isBack = (service: string, failedMs: number) =>
    isPassing(service, facts) && Date.parse(probeNamed(facts, `health/${service}`)!.since ?? '') > failedMs;
  const failing = new Map(
    ofProbes
      .filter(({ kind }) => kind === 'role_down' || kind === 'role_failing')
      .map(({ about, sinceMs }) => [about.role, { sinceMs: sinceMs! }]),
  );
  const isOfRole = (service: string, sinceMs: number) => {
    const role = failing.get(service);
    return role !== undefined && isEarlyEnough(role, sinceMs);
  };
  return facts.scrapes.flatMap((page): Found[] => {
    const { service, up, lastFailure, lastTakenMs, failingSinceMs } = page;
    if (up || !lastFailure) return [];
    const { reason, what, atMs } = lastFailure;
    const sinceMs = failingSinceMs ?? atMs;
    // If there never was a page, nobody knows when it was lost.
    if (isOfRole(service, lastTakenMs === undefined ? Number.POSITIVE_INFINITY : sinceMs)) return [];
    if (isBack(service, atMs)) return [];
    const detail = reasonOf({ last: { reason, msg: what } });
    const at = new Date(atMs).toISOString();
    const evidence: Evidence[] = [{ source: 'probe', text: `scrape of ${service}: ${detail}`, at }];
    // Nothing shows that the process runs.
    const ifUnknown = isPassing(service, facts) ? undefined : alertNamed('SvcInstanceDown').firstSteps;
    const firstSteps = firstStepsFor(reason) ?? ifUnknown;
    return [
      {
        ...{ kind: 'scrape_down', subject: service, about: { role: service } },
        ...{ detail, firstSteps, sinceMs, reason, evidence },
        ...(isWellWithout(page, facts) && { whileWell: true }),
      },
    ];
  });
}

/** Whether the page of a line is still down. If the page is not listed only because its role fails, the problem is not over. */
export function isPageDown(line: string, facts: StatusFacts): boolean {
  const [, role] = /^scrape_down\/(.*)$/s.exec(line) ?? [];
  const page = role === undefined ? undefined : pageOf(facts, role);
  return page !== undefined && !page.up && page.lastFailure !== undefined;
}

type LogFaultText = (fault: LogFaultReport) => Required<Pick<Found, 'kind' | 'detail' | 'fix'>>;

/** The texts for each fault of a log file: what is wrong, and how to fix it. */
const logFaultTexts: Readonly<Record<LogFaultReport['kind'], LogFaultText>> = {
  gone: ({ path }) => ({
    kind: 'log_gone',
    detail: 'no file of this name exists any more',
    fix: `have the role write its log to ${path} again, or change logs.paths`,
  }),
  disk_full: ({ path }) => ({
    kind: 'log_disk_full',
    detail: 'its file system has no free space, and it does not grow',
    fix: `free space: df ${dirname(path)}`,
  }),
  deleted: ({ writer }) => ({
    kind: 'log_deleted',
    detail: writer
      ? `process ${writer.pid} (${writer.command}) still writes to the deleted file`
      : 'a process still writes to the deleted file',
    fix: 'restart the process, or have it open its log again; its lines are lost when it ends',
  }),
};

function logFaultProblems({ logFaults }: StatusFacts): Found[] {
  return logFaults.map((fault) => {
    const { path, services, since } = fault;
    const about = services.length === 1 ? { role: services[0]! } : {};
    return {
      ...logFaultTexts[fault.kind](fault),
      subject: path,
      about,
      sinceMs: Date.parse(since),
      evidence: [],
    };
  });
}

/** The problems of logs. A log that is behind by more than the limit of the alert is a problem. */
function logProblems({ logs }: StatusFacts): Found[] {
  const mostLagBytes = limitOf('SvcLogLag');
  return logs.flatMap(({ path, services, state, lagBytes }): Found[] => {
    const about = services.length === 1 ? { role: services[0]! } : {};
    if (state !== 'following' && state !== 'missing' && !state.startsWith('not read: '))
      return [{ kind: 'log_unread', subject: path, about, detail: state, evidence: [] }];
    if (lagBytes <= mostLagBytes) return [];
    const detail = `${Math.round(lagBytes / 2 ** 20)} MiB behind`;
    return [{ kind: 'log_lag', subject: path, about, detail, evidence: [] }];
  });
}

function replicationProblems({ replication }: StatusFacts): Found[] {
  return replication
    .filter(({ lagSeconds }) => lagSeconds > limitOf('SvcReplicationLag'))
    .map(({ source, target, lagSeconds }) => {
      const value = `${Math.round(lagSeconds)} s behind`;
      const limit = `${limitOf('SvcReplicationLag')} s`;
      return {
        kind: 'replication_lag',
        subject: `${source} to ${target}`,
        about: { clusters: [source, target] },
        detail: value,
        evidence: [{ source: 'value', text: `${target} is ${value} ${source}`, value, limit }],
      };
    });
}

function certificateProblems({ certificates }: StatusFacts, nowMs: number): Found[] {
  return certificates.flatMap(({ probe, notAfter }): Found[] => {
    const expiry = expiryOf(notAfter, nowMs);
    if (!expiry) return [];
    const text = `${probe}: its certificate ${expiry.isOver ? 'expired' : 'expires'} on ${notAfter}`;
    const evidence: Evidence[] = [{ source: 'probe', text }];
    return [{ kind: 'certificate', subject: probe, about: { probe }, ...expiry.words, evidence }];
  });
}

/** Everything that is wrong according to the facts, in no order. Pure. */
export function problemsIn(facts: StatusFacts, nowMs: number): Found[] {
  const backedUp = backedUpIn(facts.probes);
  const clusterCount = facts.probes.filter(({ kind }) => kind === 'cluster').length;
  const others = { facts, nowMs, backedUp, clusterCount };
  const ofProbes = facts.probes.filter(isChecked).flatMap((probe) => probeProblems(probe, others));
  return [
    ...ofProbes,
    ...scrapeProblems(facts, ofProbes),
    ...replicationProblems(facts),
    ...certificateProblems(facts, nowMs),
    ...logProblems(facts),
    ...logFaultProblems(facts),
    ...agentProblems(facts, nowMs),
    ...valueProblems(facts),
  ].map((found) => withLastWords(found, facts));
}
