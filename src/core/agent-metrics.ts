import { agent } from './agent-metrics/agent.ts';
import { archives, backups, recovery } from './agent-metrics/recovery.ts';
import { clusters, domains, replication } from './agent-metrics/replicated.ts';
import { logs, probes, roleMetrics, stores } from './agent-metrics/watched.ts';
import type { Metric } from './catalog.ts';

/**
 * Every metric that the agent itself makes (contract, Names and labels), in the table's order. The families
 * `svc_agent_process_*` and `svc_agent_nodejs_*` are prom-client's, with its help texts, and not listed.
 */
export const agentMetrics = [
  ...logs,
  ...roleMetrics,
  ...probes,
  ...stores,
  ...clusters,
  ...domains,
  ...replication,
  ...backups,
  ...recovery,
  ...archives,
  ...agent,
] as const;
export type AgentMetricName = (typeof agentMetrics)[number]['name'];

const byName = new Map<string, Metric>(agentMetrics.map((metric) => [metric.name, metric]));

/** The agent's metric of this name; a name outside the table does not compile. */
export function agentMetric(name: AgentMetricName): Metric {
  return byName.get(name) as Metric;
}
