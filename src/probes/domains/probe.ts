import type { CommandFailureReason } from '../../core/reasons.ts';
import type { ClusterGroupOptions, ClusterOptions } from '../clusters/options.ts';
import { runCommand } from '../command.ts';
import type { Finding, Probe, ProbeDeps } from '../probe.ts';
import { excerpt, ProbeError } from '../probe-error.ts';
import { asksEachCluster, commandFor } from './command.ts';
import { describingOf } from './describing.ts';
import type { DomainDescription } from './description.ts';
import { countFailovers, failoverMemory } from './failovers.ts';
import { judgeDomain } from './judging.ts';
import { domainGauges } from './samples.ts';

export interface DomainProbeOptions {
  domain: string;
  /** As configured, with its placeholders. */
  command: readonly string[];
  group?: ClusterGroupOptions;
  timeoutMs: number;
}

/** A description takes a few kilobytes. */
const maxBytes = 1024 * 1024;
const shownOfAnswer = 120;
/** The part of the time that other clusters are waited for, so that one that hangs does not cost the own view. */
const shareOfOthers = 0.8;

type View =
  | { description: DomainDescription; fault?: undefined }
  | { description?: undefined; fault: { reason: CommandFailureReason; msg: string } };

/** Where a domain is active and how it is set up, by what a client's command prints. */
export function createDomainProbe(options: DomainProbeOptions, { clock }: Pick<ProbeDeps, 'clock'>): Probe {
  return {
    async check(signal, recalled) {
      const othersLate = new AbortController();
      const cancel = clock.after(shareOfOthers * options.timeoutMs, () => othersLate.abort());
      try {
        const own = await viewThrough(options, ownCluster(options.group), signal);
        if (own.fault) return { ...own.fault, remember: recalled };
        const inTime = AbortSignal.any([signal, othersLate.signal]);
        const others = await otherViews(options, own.description, inTime);
        return findingOf(options, own.description, others, recalled, clock.nowMs());
      } finally {
        cancel();
      }
    },
  };
}

function ownCluster(group: ClusterGroupOptions | undefined): ClusterOptions | undefined {
  return group?.clusters.find(({ name }) => name === group.currentClusterName);
}

/** The domain by one call of the command; what the command does wrong is part of the view. */
async function viewThrough(
  { domain, command }: DomainProbeOptions,
  cluster: ClusterOptions | undefined,
  signal: AbortSignal,
): Promise<View> {
  try {
    const { stdout } = await runCommand(commandFor(command, domain, cluster), { signal, maxBytes });
    return readView(domain, stdout);
  } catch (thrown) {
    if (thrown instanceof ProbeError) return { fault: { reason: thrown.reason, msg: thrown.message } };
    throw thrown;
  }
}

function readView(domain: string, printed: string): View {
  const description = describingOf(printed);
  const name = description?.name;
  if (description && (name === undefined || name === domain)) return { description };
  const msg = description
    ? `the answer describes another domain, ${name}`
    : `not a description of a domain: ${beginningOf(printed)}`;
  return { fault: { reason: 'invalid_answer', msg } };
}

function beginningOf(printed: string): string {
  const line = excerpt(printed, shownOfAnswer);
  return line === '' ? 'nothing' : JSON.stringify(line);
}

/** The views of the other clusters that have the domain, by name; only where the command can ask them. */
async function otherViews(
  options: DomainProbeOptions,
  { global, clusters }: DomainDescription,
  signal: AbortSignal,
): Promise<Map<string, View>> {
  const { command, group } = options;
  if (!group || global === false || !asksEachCluster(command)) return new Map();
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
  { domain, group }: DomainProbeOptions,
  own: DomainDescription,
  others: ReadonlyMap<string, View>,
  recalled: unknown,
  nowMs: number,
): Finding {
  const seen = new Map(
    [...others].flatMap(([name, { description }]) => (description ? [[name, description]] : [])),
  );
  const unseen = [...others].flatMap(([name, { fault }]) =>
    fault ? `not known through ${name}: ${fault.msg}` : [],
  );
  const { reason, msg, versionOf, notes } = judgeDomain(own, seen, group);
  const { count, memory } = countFailovers(failoverMemory(recalled), own, nowMs);
  return {
    reason,
    msg: [msg ?? summaryOf(own), ...unseen].join('; '),
    gauges: domainGauges(domain, own, memory.lastMs),
    increases: [{ name: 'svc_domain_failovers_total', labels: { domain }, value: count }],
    details: { ...shown(own), versionOf, notes: [...notes, ...unseen], views: viewsShown(group, own, seen) },
    remember: memory,
  };
}

function summaryOf({ activeCluster, clusters, global }: DomainDescription): string {
  const where =
    activeCluster === undefined ? 'it is not said where it is active' : `active in ${activeCluster}`;
  return global === false
    ? `${where}, a local domain`
    : clusters
      ? `${where}, of ${clusters.join(', ')}`
      : where;
}

const shown = ({ failoverHistory, ...rest }: DomainDescription) => ({
  ...rest,
  failovers: failoverHistory?.length,
});

/** Who says what, where more than one was asked. */
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
