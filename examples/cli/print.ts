import type { DescribedDomain } from '../service/clusters/domains.ts';
import type { ListedWorkflow } from '../service/clusters/frontend.ts';

/** A domain in the lines that the service's client prints. */
export function domainText(domain: DescribedDomain): string {
  const { domainInfo: info, configuration, replicationConfiguration: replication } = domain;
  const data = Object.entries(info.data).map(([key, value]) => `${key}:${value}`);
  const lines = {
    Name: info.name,
    UUID: info.uuid,
    Description: info.description,
    OwnerEmail: '',
    DomainData: `map[${data.join(' ')}]`,
    Status: info.status,
    RetentionInDays: configuration.workflowExecutionRetentionPeriodInDays,
    EmitMetrics: true,
    'IsGlobal(XDC)Domain': domain.isGlobalDomain,
    ActiveClusterName: replication.activeClusterName,
    Clusters: replication.clusters.map(({ clusterName }) => clusterName).join(', '),
    HistoryArchivalStatus: configuration.historyArchivalStatus,
    HistoryArchivalURI: configuration.historyArchivalURI,
    VisibilityArchivalStatus: configuration.visibilityArchivalStatus,
    VisibilityArchivalURI: configuration.visibilityArchivalURI,
  };
  return Object.entries(lines)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('');
}

/** The answer as the frontend gave it, as one JSON object. */
export const domainJson = (domain: DescribedDomain): string => `${JSON.stringify(domain, undefined, 2)}\n`;

/** Workflows as the service's client lists them: a head, and a line each. */
export const workflowsText = (workflows: readonly ListedWorkflow[]): string =>
  [
    'WORKFLOW TYPE | WORKFLOW ID | RUN ID',
    ...workflows.map((each) => `${each.type} | ${each.workflowId} | ${each.runId}`),
  ]
    .map((line) => `${line}\n`)
    .join('');
