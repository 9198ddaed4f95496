import { join } from 'node:path';

/** What the example service says of itself once it is ready. */
export interface ServiceAddresses {
  directory: string;
  incident: string;
  /** What can go wrong there. */
  kinds: readonly string[];
  roles: Readonly<Record<string, { health: string; metrics: string; log: string }>>;
}

/** What the demo lets the agent do; what it cannot do yet stands in the configuration as a comment. */
const features = { logs: true, health: false, scrape: true } as const;

/** The ports the agent shall listen on. */
export interface AgentPorts {
  metrics: number;
  admin: number;
}

/** An `agent.yaml` for the example service. JSON is YAML, so paths are written as JSON strings. */
export function demoConfig(service: ServiceAddresses, ports: AgentPorts): string {
  const lines = Object.entries(service.roles).flatMap(([role, { health, metrics, log }]) => [
    `  ${role}:`,
    entry('logs', `{paths: [${JSON.stringify(`${log}*`)}], startAt: beginning}`),
    entry('health', health),
    entry('scrape', metrics),
  ]);
  return `# Written by svc-agent demo; it goes when the demo ends.
roles: [${Object.keys(service.roles).join(', ')}]
stateDirectory: ${JSON.stringify(join(service.directory, 'state'))}
metrics:
  tags: {cluster: demo}
  pullmetrics: {listenAddress: "127.0.0.1:${ports.metrics}"}
admin: {listenAddress: "127.0.0.1:${ports.admin}"}
services:
${lines.join('\n')}
`;
}

function entry(feature: keyof typeof features, value: string): string {
  return `    ${features[feature] ? '' : '# '}${feature}: ${value}`;
}

/** A server's configuration that scrapes the agent, one job per role, for whoever has one. */
export function prometheusConfig({ metrics }: AgentPorts, roles: readonly string[]): string {
  const jobs = [...roles, 'svc-agent'].map((job) => {
    const service = job === 'svc-agent' ? 'agent' : job;
    return `  - job_name: ${job}
    params: {service: [${service}]}
    static_configs: [{targets: ["127.0.0.1:${metrics}"]}]
`;
  });
  return `global: {scrape_interval: 5s}\nscrape_configs:\n${jobs.join('')}`;
}
