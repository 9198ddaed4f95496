import type { DomainReport, ProbeStatus, StatusReport } from '../../report.ts';
import { reasonOf, subjectOf } from '../../verdict/probe-text.ts';
import type { Data } from './data.ts';
import { type Child, h, table } from './dom.ts';
import { ago, count, seconds } from './format.ts';
import { type Frame, folded, note, pill, section, type Tone } from './parts.ts';
import { type Mark, plot, timeLine } from './plots.ts';
import { axis, failureText, probesOf, stateOf, targetItem } from './targets.ts';

interface DomainDetails {
  activeCluster?: string;
  clusters?: readonly string[];
  failover?: { ready?: boolean; why?: string };
}

const lagColours = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6'];
/** Up to this many domains are shown beside other sections. */
const mostBeside = 8;
/** How many domains are shown outside of a fold, in addition to those that need attention. */
const mostDomains = 6;
/** How many domains are shown that match the reader's filter. */
const mostFound = 24;

/** Whether the section uses the whole width, because it has many domains. */
export const hasManyDomains = (report: StatusReport): boolean =>
  probesOf(report, 'domain').length > mostBeside;

/** The section on clusters, the lag between them, and the domains with their failovers. */
export function domains(data: Data, report: StatusReport, frame: Frame): Child {
  const clusters = probesOf(report, 'cluster');
  const probes = probesOf(report, 'domain');
  const replication = probesOf(report, 'replication');
  if (clusters.length + probes.length + replication.length === 0) return undefined;
  const lines = report.replication.slice(0, lagColours.length).map(({ source, target }, i) => ({
    series: `replication/${source} to ${target}`,
    label: `${source} → ${target}`,
    colour: lagColours[i]!,
  }));
  const isWide = hasManyDomains(report);
  const ofClusters = [
    clusters.length > 0 &&
      h(
        'ul',
        { class: 'targets' },
        clusters.map((probe) => clusterItem(probe, data, frame)),
      ),
    lines.length > 0
      ? plot(
          { id: 'replication', title: 'Replication lag', text: seconds, least: 5, lines },
          data.plotted,
          frame.shown,
        )
      : replication.map((probe) => note('Replication: ', reasonOf(probe) || 'not checked yet')),
  ];
  const ofDomains = probes.length > 0 && [
    failoverTimeLine(data, report, frame),
    domainTable(probes, report, frame),
  ];
  const isSplit = isWide && clusters.length + lines.length > 0;
  return section(
    { id: 'domains', title: 'Domains and clusters', aside: axis(frame), wide: isWide },
    isSplit
      ? h('div', { class: 'split' }, h('div', {}, ofClusters), h('div', {}, ofDomains))
      : [ofClusters, ofDomains],
  );
}

function clusterItem(probe: ProbeStatus, data: Data, frame: Frame): HTMLElement {
  const target = {
    key: probe.name,
    title: subjectOf(probe),
    state: stateOf(probe),
    aside: h('span', { class: 'muted' }, 'cluster'),
    series: `${probe.name}/up`,
  };
  return targetItem(target, data, frame, failureText(probe));
}

/**
 * A time line of the failovers since the agent started, and of the last failover of each domain before that; nothing if there are
 * none.
 */
function failoverTimeLine({ plotted }: Data, report: StatusReport, { shown }: Frame): Child {
  const last = report.domains.flatMap(({ domain, lastFailover, activeCluster }): Mark[] => {
    const text = `${domain} failed over to ${activeCluster ?? 'another cluster'}`;
    return lastFailover ? [{ atMs: Date.parse(lastFailover), kind: 'failover', text }] : [];
  });
  const seen = report.changes
    .filter(({ kind }) => kind === 'failover')
    .map(({ at, what: text }): Mark => ({ atMs: Date.parse(at), kind: 'failover', text }));
  const all = [...last, ...seen];
  if (all.length === 0) return undefined;
  return h(
    'div',
    { class: 'timeline' },
    h('span', { class: 'muted small' }, 'Failovers'),
    timeLine('Failovers', all, plotted, shown),
  );
}

const detailsOf = (probe: ProbeStatus) => (probe.last?.details ?? {}) as DomainDetails;

/** The rank of a domain: 0 if it fails, 1 if it is not ready for a failover, 2 if that is not known, otherwise 3. */
const rankOf = (probe: ProbeStatus): number => {
  if (probe.last?.ok === false) return 0;
  const { failover } = detailsOf(probe);
  if (!failover) return 3;
  return failover.ready === undefined ? 2 : failover.ready ? 3 : 1;
};

/** A table of the domains. Those that need attention come first; those beyond `mostDomains` are folded. */
function domainTable(probes: readonly ProbeStatus[], report: StatusReport, frame: Frame): Child {
  const head = ['Domain', 'Active in', 'Clusters', 'Failover', 'Failovers'];
  const reports = new Map(report.domains.map((one) => [one.domain, one]));
  const inOrder = probes
    .filter((probe) => frame.takes(subjectOf(probe)))
    .sort((one, other) => rankOf(one) - rankOf(other));
  if (inOrder.length === 0) return note('No name of a domain contains this text.');
  const isWrong = (probe: ProbeStatus) => rankOf(probe) < 2;
  const most = inOrder.length < probes.length ? mostFound : mostDomains;
  return folded({ key: 'more-domains', most, noun: 'domains', isWrong }, inOrder, (part, isRest) => {
    const rows = part.map((probe) => domainRow(probe, reports.get(subjectOf(probe)), frame));
    return table(isRest ? 'More domains' : 'Domains', head, rows);
  });
}

function domainRow(probe: ProbeStatus, domain: DomainReport | undefined, { nowMs }: Frame) {
  const { activeCluster, clusters = [], failover } = detailsOf(probe);
  return {
    key: probe.name,
    cells: [
      h('strong', {}, subjectOf(probe)),
      probe.last?.ok === false
        ? [pill('bad', 'fault'), h('div', { class: 'reason' }, reasonOf(probe))]
        : (activeCluster ?? domain?.activeCluster ?? '–'),
      clusters.join(', ') || '–',
      [
        pill(...failoverState(probe)),
        failover?.ready !== true && failover?.why && h('div', { class: 'muted small' }, failover.why),
      ],
      [
        count(domain?.failovers ?? 0),
        domain?.lastFailover && h('div', { class: 'muted small' }, `last ${ago(domain.lastFailover, nowMs)}`),
      ],
    ],
  };
}

function failoverState(probe: ProbeStatus): [Tone, string] {
  const { failover } = detailsOf(probe);
  if (!failover && probe.last?.ok === true) return ['quiet', 'local'];
  if (failover?.ready === undefined) return ['quiet', 'not known'];
  return failover.ready ? ['good', 'ready'] : ['warn', 'not ready'];
}
