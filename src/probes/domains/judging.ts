import type { DomainFailureReason } from '../../core/reasons.ts';
import type { ClusterGroupOptions } from '../clusters/options.ts';
import type { DomainDescription } from './description.ts';
import { clusterOfVersion } from './failover-version.ts';

/** Suggested redundancy for global domains (spec, Limits). */
const suggestedClusters = 3;

/** What is said of a domain beside its numbers: why it is not well, and what is worth a note. */
export interface Judgement {
  reason?: DomainFailureReason;
  msg?: string;
  /** The cluster that the failover version belongs to. */
  versionOf?: string;
  notes: readonly string[];
}

/** Holds a domain's description against itself, the group's arithmetic and the other clusters' views by name. */
export function judgeDomain(
  own: DomainDescription,
  views: ReadonlyMap<string, DomainDescription>,
  group: ClusterGroupOptions | undefined,
): Judgement {
  const notes = notesOn(own);
  const { versionOf, fault } = judgeVersion(own, group);
  const others = [...views].filter(([, view]) => isElsewhere(own, view));
  if (others.length > 0) {
    const told = others.map(([name, view]) => `${name} says ${view.activeCluster}`).join(', ');
    const msg = `active in ${own.activeCluster} as the own cluster has it, but ${told}`;
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

/** A local domain's version means nothing, and one that is active everywhere has more than one. */
function judgeVersion(
  { global, activeActive, failoverVersion, activeCluster }: DomainDescription,
  group: ClusterGroupOptions | undefined,
): { versionOf?: string; fault?: string } {
  const isJudged = global !== false && !activeActive && failoverVersion !== undefined && failoverVersion >= 0;
  if (!group || !isJudged) return {};
  const versionOf = clusterOfVersion(failoverVersion, group)?.name;
  if (versionOf === activeCluster || activeCluster === undefined) return { versionOf };
  const whose = versionOf === undefined ? 'no cluster of the group' : versionOf;
  const fault = `active in ${activeCluster}, but its failover version ${failoverVersion} belongs to ${whose}`;
  return { versionOf, fault };
}

function notesOn({ global, activeActive, clusters, activeCluster }: DomainDescription): string[] {
  const notes: string[] = [];
  if (global && clusters && clusters.length < suggestedClusters) {
    notes.push(`spans ${clusters.length} clusters; ${suggestedClusters} or more are suggested`);
  }
  if (clusters && activeCluster !== undefined && !clusters.includes(activeCluster)) {
    notes.push(`active in ${activeCluster}, which is not among its clusters`);
  }
  if (activeActive)
    notes.push('active in several clusters at once; the name is where it is active by default');
  return notes;
}
