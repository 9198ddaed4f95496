import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { CommandFailureReason, DomainFailureReason } from '../../core/reasons.ts';
import { defaultRetentionMs } from '../archival/unarchived.ts';
import type { ClusterGroupOptions, ClusterOptions } from '../clusters/block.ts';
import { runCommand } from '../command.ts';
import { excerpt, type Finding, type Probe, type ProbeDeps, ProbeError, type Sample } from '../probe.ts';
import { waitRunning } from '../running-wait.ts';
import {
  type Archive,
  archives,
  commandFor,
  type DomainDescription,
  isPerCluster,
  parseDescription,
} from './description.ts';
import {
  clusterOfVersion,
  countFailovers,
  type FailoverMemory,
  failoverMemory,
  failoverReadiness,
  isBefore,
  versionUnderWay,
} from './failovers.ts';

/** The suggested number of clusters of a global domain (spec, Limits). */
const suggestedClusters = 3;

/** The faults of a domain, and notes. */
interface DomainAssessment {
  reason?: DomainFailureReason;
  msg?: string;
  /** The cluster to which the failover version belongs. */
  versionOf?: string;
  notes: readonly string[];
}

/**
 * Compares a domain's description with the group's failover versions and with the other clusters' views. A failover that is under
 * way is no disagreement.
 */
function assessDomain(
  own: DomainDescription,
  views: ReadonlyMap<string, DomainDescription>,
  group: ClusterGroupOptions | undefined,
  underWay: number | undefined,
): DomainAssessment {
  const { versionOf, fault } = checkVersion(own, group);
  const elsewhere = [...views].filter(([, view]) => isElsewhere(own, view));
  const others = elsewhere.filter(([, view]) => !isBefore(own, underWay) && !isBefore(view, underWay));
  const notes = [
    ...notesOn(own, group),
    ...(elsewhere.length > others.length
      ? ['a failover is under way, which not every cluster knows yet']
      : []),
  ];
  if (others.length > 0) {
    const differing = others.map(([name, view]) => `${name} says ${view.activeCluster}`).join(', ');
    const msg = `active in ${own.activeCluster} according to this cluster, but ${differing}`;
    return { reason: 'clusters_disagree', msg, versionOf, notes: fault ? [fault, ...notes] : notes };
  }
  return fault ? { reason: 'version_mismatch', msg: fault, versionOf, notes } : { versionOf, notes };
}

function isElsewhere(
  { activeCluster: here }: DomainDescription,
  { activeCluster: there }: DomainDescription,
) {
  return here !== undefined && there !== undefined && here !== there;
}

/**
 * Checks the failover version. The version of a local domain has no meaning, and a domain that is active in several clusters has
 * several.
 */
function checkVersion(
  { global, activeActive, failoverVersion, activeCluster }: DomainDescription,
  group: ClusterGroupOptions | undefined,
): { versionOf?: string; fault?: string } {
  const isChecked =
    global !== false && !activeActive && failoverVersion !== undefined && failoverVersion >= 0;
  if (!group || !isChecked) return {};
  const versionOf = clusterOfVersion(failoverVersion, group)?.name;
  if (versionOf === activeCluster || activeCluster === undefined) return { versionOf };
  const whose = versionOf === undefined ? 'no cluster of the group' : versionOf;
  const fault = `active in ${activeCluster}, but its failover version ${failoverVersion} belongs to ${whose}`;
  return { versionOf, fault };
}

function notesOn(
  { global, activeActive, clusters, activeCluster }: DomainDescription,
  group: ClusterGroupOptions | undefined,
): string[] {
  const notes: string[] = [];
  // If the group has no more clusters, that is its owner's decision.
  const available = group?.clusters.filter(({ enabled }) => enabled).length ?? suggestedClusters;
  if (global && clusters && clusters.length < Math.min(suggestedClusters, available)) {
    const spanned = clusters.length === 1 ? '1 cluster' : `${clusters.length} clusters`;
    notes.push(`spans ${spanned}; ${suggestedClusters} or more are suggested`);
  }
  if (clusters && activeCluster !== undefined && !clusters.includes(activeCluster)) {
    notes.push(`active in ${activeCluster}, which is not among its clusters`);
  }
  if (activeActive) notes.push('active in several clusters at once; the name is the default one');
  return notes;
}

/** The gauges of a domain for which the description has values. `lastFailoverMs` is since the epoch. */
function domainGauges(
  domain: string,
  description: DomainDescription,
  lastFailoverMs: number | undefined,
): Sample[] {
  const { activeCluster, failoverVersion, global, retentionMs, archival } = description;
  const flag = (value: boolean | undefined) => (value === undefined ? undefined : Number(value));
  const inSeconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000);
  const gauge = (name: AgentMetricName, value: number | undefined, labels = {}): Sample[] =>
    value === undefined ? [] : [{ name, labels: { domain, ...labels }, value }];
  return [
    ...(activeCluster === undefined
      ? []
      : gauge('svc_domain_active_cluster', 1, { active_cluster: activeCluster })),
    ...gauge('svc_domain_clusters', spanOf(description)),
    ...gauge('svc_domain_global', flag(global)),
    ...gauge('svc_domain_failover_version', failoverVersion),
    ...gauge('svc_domain_retention_seconds', inSeconds(retentionMs ?? defaultRetentionMs)),
    ...archives.flatMap((archive) =>
      gauge('svc_domain_archival_enabled', flag(archival[archive]), { archive }),
    ),
    ...gauge('svc_domain_last_failover_timestamp_seconds', inSeconds(lastFailoverMs)),
  ];
}

/** The number of clusters of a domain: clients do not list the single cluster of a local domain. */
function spanOf({ clusters, global }: DomainDescription): number | undefined {
  return clusters?.length ?? (global === false ? 1 : undefined);
}

interface DomainProbeOptions {
  domain: string;
  /** The configured command, with its placeholders. */
  command: readonly string[];
  group?: ClusterGroupOptions;
  timeoutMs: number;
  /**
   * The probe of an archive that the domain names. Undefined for the default archive, which has a probe of its own, and if the
   * agent checks no archive of that kind.
   */
  ownArchive?(archive: Archive, uri: string): Promise<Probe> | undefined;
}

/** The maximum size of a description, which takes a few kilobytes. */
const maxBytes = 1024 * 1024;
const shownOfAnswer = 120;
/** The share of the timeout for the other clusters, so that a cluster that hangs does not cost the result of this one. */
const shareOfOthers = 0.8;

type DomainView =
  | { description: DomainDescription; fault?: undefined }
  | { description?: undefined; fault: { reason: CommandFailureReason; msg: string } };

/** Checks where a domain is active and how it is configured, according to the output of the client's command. */
export function createDomainProbe(
  options: DomainProbeOptions,
  { clock, latest = () => undefined }: Pick<ProbeDeps, 'clock' | 'latest'>,
): Probe {
  const ownArchives = createOwnArchives(options);
  return {
    async check(signal, recalled) {
      const othersLate = new AbortController();
      const { cancel } = waitRunning(shareOfOthers * options.timeoutMs, clock, () => othersLate.abort());
      try {
        const own = await viewThrough(options, ownCluster(options.group), signal);
        if (own.fault) return { ...own.fault, remember: recalled };
        const inTime = AbortSignal.any([signal, othersLate.signal]);
        const others = await otherViews(options, own.description, inTime);
        const finding = findingOf(options, own.description, others, {
          recalled,
          nowMs: clock.nowMs(),
          latest,
        });
        return withArchives(finding, await ownArchives.check(own.description, signal));
      } finally {
        cancel();
      }
    },
    close: () => ownArchives.close(),
  };
}

/** One check of an archive that a domain itself names. */
interface OwnArchive {
  archive: Archive;
  uri: string;
  finding: Finding;
}

/** The archives that a domain itself names. Each stays open while the domain names it. */
function createOwnArchives({ ownArchive = () => undefined }: DomainProbeOptions) {
  const opened = new Map<Archive, { uri: string; probe: Promise<Probe> | undefined; recalled?: unknown }>();
  const checkOne = async (
    archive: Archive,
    uri: string,
    signal: AbortSignal,
  ): Promise<OwnArchive | undefined> => {
    let kept = opened.get(archive);
    if (kept?.uri !== uri) {
      await (await kept?.probe)?.close?.();
      kept = { uri, probe: ownArchive(archive, uri) };
      opened.set(archive, kept);
    }
    const finding = await (await kept.probe)?.check(signal, kept.recalled);
    kept.recalled = finding?.remember ?? kept.recalled;
    return finding && { archive, uri, finding };
  };
  return {
    async check(
      { archival, archivalUris = {} }: DomainDescription,
      signal: AbortSignal,
    ): Promise<OwnArchive[]> {
      const named = archives.flatMap((archive) => {
        const uri = archivalUris[archive];
        return archival[archive] && uri !== undefined ? [checkOne(archive, uri, signal)] : [];
      });
      return (await Promise.all(named)).filter((checked) => checked !== undefined);
    },
    async close() {
      for (const { probe } of opened.values()) await (await probe)?.close?.();
    },
  };
}

/** The finding of a domain together with the findings about its own archives. */
function withArchives(finding: Finding, checked: readonly OwnArchive[]): Finding {
  if (checked.length === 0) return finding;
  const failed = checked.filter((one) => one.finding.reason !== undefined);
  const faults = failed.map(({ archive, uri, finding: { msg } }) => `its ${archive} archive ${uri}: ${msg}`);
  const shownArchives = checked.map(({ archive, uri, finding: { reason, msg } }) => [
    archive,
    { uri, ok: reason === undefined, msg },
  ]);
  return {
    ...finding,
    reason: finding.reason ?? failed[0]?.finding.reason,
    msg: [finding.msg, ...faults].join('; '),
    details: { ...finding.details, archives: Object.fromEntries(shownArchives) },
  };
}

function ownCluster(group: ClusterGroupOptions | undefined): ClusterOptions | undefined {
  return group?.clusters.find(({ name }) => name === group.currentClusterName);
}

/** A domain as one cluster describes it, or the fault of the command. */
async function viewThrough(
  { domain, command }: DomainProbeOptions,
  cluster: ClusterOptions | undefined,
  signal: AbortSignal,
): Promise<DomainView> {
  try {
    const { stdout, hide } = await runCommand(commandFor(command, domain, cluster), { signal, maxBytes });
    return readView(domain, stdout, hide);
  } catch (thrown) {
    if (thrown instanceof ProbeError) return { fault: { reason: thrown.reason, msg: thrown.message } };
    throw thrown;
  }
}

function readView(domain: string, printed: string, hide: (text: string) => string): DomainView {
  const description = parseDescription(printed);
  const name = description?.name;
  if (description && (name === undefined || name === domain)) return { description };
  const msg = description
    ? `the output describes another domain, ${name}`
    : `the output is not a description of a domain: ${beginningOf(hide(printed))}`;
  return { fault: { reason: 'invalid_answer', msg } };
}

function beginningOf(printed: string): string {
  const line = excerpt(printed, shownOfAnswer);
  return line === '' ? 'nothing' : JSON.stringify(line);
}

/** The views of the other clusters that have the domain, by name, if the command can query them. */
async function otherViews(
  options: DomainProbeOptions,
  { global, clusters }: DomainDescription,
  signal: AbortSignal,
): Promise<Map<string, DomainView>> {
  const { command, group } = options;
  if (!group || global === false || !isPerCluster(command)) return new Map();
  const asked = group.clusters.filter(
    ({ name, enabled }) =>
      enabled && name !== group.currentClusterName && (clusters === undefined || clusters.includes(name)),
  );
  const views = asked.map(
    async (cluster) => [cluster.name, await viewThrough(options, cluster, signal)] as const,
  );
  return new Map(await Promise.all(views));
}

function findingOf(
  { domain, group, command }: DomainProbeOptions,
  own: DomainDescription,
  others: ReadonlyMap<string, DomainView>,
  { recalled, nowMs, latest }: { recalled: unknown; nowMs: number; latest: NonNullable<ProbeDeps['latest']> },
): Finding {
  const seen = new Map(
    [...others].flatMap(([name, { description }]) => (description ? [[name, description]] : [])),
  );
  const notAnswered = [...others].filter(([, { fault }]) => fault);
  const unseen = notAnswered.map(([name, { fault }]) => `not known through ${name}: ${fault!.msg}`);
  const before = failoverMemory(recalled);
  const { newest, underWay } = versionUnderWay(before, [own, ...seen.values()]);
  const { reason, msg, versionOf, notes } = assessDomain(own, seen, group, underWay);
  const { count, memory } = countFailovers(before, own, nowMs, group);
  const readiness = group && failoverReadiness({ own, views: seen, group, underWay, latest });
  const unassessed =
    readiness && readiness.ready === undefined ? [unassessedNote(readiness.why, command)] : [];
  return {
    reason,
    msg: [msg ?? summaryOf(own), ...unseen].join('; '),
    gauges: [
      ...domainGauges(domain, own, memory.lastMs),
      ...(readiness?.ready === undefined
        ? []
        : [
            {
              name: 'svc_domain_failover_ready' as const,
              labels: { domain },
              value: Number(readiness.ready),
            },
          ]),
    ],
    events: count > 0 ? [failoverEvent(domain, before, own, count)] : [],
    increases: [{ name: 'svc_domain_failovers_total', labels: { domain }, value: count }],
    details: {
      ...shown(own),
      versionOf,
      failover: readiness,
      notes: [...notes, ...unseen, ...unassessed],
      views: viewsShown(group, own, seen),
      notAnswered: notAnswered.map(([name]) => name),
    },
    remember: { ...memory, newest, disagreed: reason === 'clusters_disagree' },
  };
}

/** A note that says why `svc_domain_failover_ready` is absent. */
function unassessedNote(why: string, command: DomainProbeOptions['command']): string {
  const note = `svc_domain_failover_ready is absent: ${why}`;
  if (isPerCluster(command)) return note;
  return `${note}; domains.describe.command asks this cluster only, put {address} into it to ask each cluster`;
}

/** The log event for failovers since the last check. */
function failoverEvent(
  domain: string,
  before: FailoverMemory | undefined,
  { activeCluster, failoverVersion }: DomainDescription,
  failovers: number,
) {
  const fields = { domain, from: before?.active, to: activeCluster, failovers, failoverVersion };
  return { level: 'info' as const, msg: 'a domain failed over', fields };
}

function summaryOf({ activeCluster, clusters, global }: DomainDescription): string {
  const where =
    activeCluster === undefined
      ? 'the output does not show where it is active'
      : `active in ${activeCluster}`;
  return global === false
    ? `${where}, a local domain`
    : clusters
      ? `${where}; it spans ${clusters.join(', ')}`
      : where;
}

const shown = ({ failoverHistory, description, retentionMs, ...rest }: DomainDescription) => ({
  ...rest,
  description: description && excerpt(description),
  retentionMs: retentionMs ?? defaultRetentionMs,
  /** The description shows no retention, so the service's default applies. */
  retentionIsDefault: retentionMs === undefined || undefined,
  failovers: failoverHistory?.length,
});

/** The view of each cluster, if more than one was queried. */
function viewsShown(
  group: ClusterGroupOptions | undefined,
  own: DomainDescription,
  others: ReadonlyMap<string, DomainDescription>,
) {
  if (!group || others.size === 0) return undefined;
  const views = [[group.currentClusterName, own] as const, ...others];
  return Object.fromEntries(
    views.map(([name, { activeCluster, failoverVersion }]) => [name, { activeCluster, failoverVersion }]),
  );
}
