/** Every command that works, with its line in the help; `dispatch.ts` holds their code. */
export const commands = [
  { name: 'run', summary: 'run the agent' },
  { name: 'check', summary: 'judge the configuration, and the service’s own files' },
  { name: 'probe', summary: 'look once at roles, stores, clusters, domains and archives' },
  { name: 'status', summary: 'show what a running agent is doing' },
  { name: 'rules', summary: 'print or write alert and recording rules for Prometheus' },
  { name: 'dashboards', summary: 'print or write dashboards for Grafana' },
  { name: 'init', summary: 'write a commented starter configuration' },
  { name: 'demo', summary: 'run an example service and the agent beside it' },
  { name: 'schema', summary: 'print the JSON Schema of the configuration, or every closed list' },
  { name: 'healthcheck', summary: 'ask a running agent for its health' },
  { name: 'completion', summary: 'print a completion script for bash, zsh or fish' },
] as const;
export type CommandName = (typeof commands)[number]['name'];

/** Commands of the contract whose parts are still to come; they say so instead of pretending. */
export const laterCommands = ['doctor', 'backup', 'recover'] as const;
