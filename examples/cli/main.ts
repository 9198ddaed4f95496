// The example service's client, as far as the agent and its recovery procedures need it.
import { parseArgs } from 'node:util';
import type { DescribedDomain } from '../service/clusters/domains.ts';
import { type ListedWorkflow, paths } from '../service/clusters/frontend.ts';
import { askFrontend } from './ask.ts';
import { domainJson, domainText, workflowsText } from './print.ts';

const usage = `Usage: node dist/example-cli.js [--address HOST:PORT] --domain NAME COMMAND
  domain describe                          the domain; with --print_json as the frontend's answer
  domain update --active_cluster CLUSTER   makes the cluster active
  workflow list                            workflows of the domain
  --address HOST:PORT  the frontend of a cluster (127.0.0.1:7833)
`;

const options = {
  domain: { type: 'string' },
  active_cluster: { type: 'string' },
  address: { type: 'string', default: '127.0.0.1:7833' },
  print_json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

async function run(): Promise<string> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const { domain: name, active_cluster: activeCluster, address, print_json: asJson, help } = values;
  if (help) return usage;
  const command = positionals.join(' ');
  const print = asJson ? domainJson : domainText;
  if (name !== undefined && command === 'domain describe') {
    return print(await askFrontend<DescribedDomain>(address, paths.describe, { name }));
  }
  if (name !== undefined && command === 'domain update' && activeCluster !== undefined) {
    return print(await askFrontend<DescribedDomain>(address, paths.update, { name, activeCluster }));
  }
  if (name !== undefined && command === 'workflow list') {
    const listed = await askFrontend<{ executions: ListedWorkflow[] }>(address, paths.listWorkflows, {
      name,
    });
    return workflowsText(listed.executions);
  }
  throw new Error(usage.trimEnd());
}

try {
  process.stdout.write(await run());
} catch (thrown) {
  process.stderr.write(`Error: ${(thrown as Error).message}\n`);
  process.exitCode = 1;
}
