// The example service's client: `domain describe`, which is what the agent needs of it.
import { parseArgs } from 'node:util';
import { askForDomain } from './ask.ts';
import { domainJson, domainText } from './print.ts';

const usage = `Usage: node dist/example-cli.js domain describe --domain NAME [options]
  --address HOST:PORT  the frontend of a cluster (127.0.0.1:7833)
  --print_json         the frontend's answer as JSON, with the failover version
`;

const options = {
  domain: { type: 'string' },
  address: { type: 'string', default: '127.0.0.1:7833' },
  print_json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const { domain, address, print_json: asJson, help } = values;
  if (help) {
    process.stdout.write(usage);
    return;
  }
  if (positionals.join(' ') !== 'domain describe' || domain === undefined) throw new Error(usage.trimEnd());
  const described = await askForDomain(address, domain);
  process.stdout.write(asJson ? domainJson(described) : domainText(described));
}

try {
  await run();
} catch (thrown) {
  process.stderr.write(`Error: ${(thrown as Error).message}\n`);
  process.exitCode = 1;
}
