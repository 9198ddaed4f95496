import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { addressesConflict, formatAddress, parseAddress } from '../../core/address.ts';
import { roles as usualRoles } from '../../core/catalog.ts';
import { AgentError, errorText, faultLine, systemCode } from '../../core/errors.ts';
import { machineAddresses } from '../config/environment.ts';
import { entriesAt, textAt } from '../config/tree.ts';
import { serviceListeners } from '../service-config/discover.ts';
import { readServiceFiles } from '../service-config/read.ts';
import { configurationOptions, parseCommand } from './arguments.ts';
import type { Io } from './io.ts';

const usage = `Usage: svc-agent init [FILE] [--service-config FILE]... [--role ROLE]...

Writes a commented starter configuration to FILE, or to standard output. Never overwrites a file.
With the service's own files it takes roles and addresses from there.
`;

/** `svc-agent init`: a first configuration that `check` passes. */
export async function init(args: readonly string[], io: Io): Promise<number> {
  const { role, 'service-config': serviceConfig } = configurationOptions;
  const { values, positionals } = parseCommand('init', args, { role, 'service-config': serviceConfig }, 1);
  if (values.help) {
    io.stdout(usage);
    return 0;
  }
  const files = values['service-config'] ?? [];
  const text = starter(readForStarter(files, values.role ?? [], io));
  const [file] = positionals;
  if (file === undefined) io.stdout(text);
  else {
    write(resolve(io.cwd, file), file, text);
    io.stderr(`${file} written; next: svc-agent check -c ${file}\n`);
  }
  return 0;
}

/** Throws `usage` if the file is there already, `internal` if it cannot be written. */
function write(path: string, file: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o644 });
  } catch (cause) {
    if (systemCode(cause) === 'EEXIST') {
      const fault = {
        where: file,
        what: 'there already, and never overwritten',
        allowed: 'name another file',
      };
      throw new AgentError('usage', fault, cause);
    }
    const fault = {
      where: file,
      what: `cannot be written, ${errorText(cause)}`,
      allowed: 'name a writable place',
    };
    throw new AgentError('internal', fault, cause);
  }
}

/** A JSON string is a YAML string, whatever is in it. */
const quoted = (text: string): string =>
  /^[A-Za-z/][\w./-]*$/.test(text) && !isWord(text) ? text : JSON.stringify(text);
const list = (texts: readonly string[]): string => `[${texts.map(quoted).join(', ')}]`;

/** Texts that YAML reads as something else. */
const isWord = (text: string): boolean => /^(?:true|false|null)$/i.test(text);

/** A commented `agent.yaml` for what is known of the service. */
export function starter(facts: StarterFacts): string {
  return `# svc-agent. Check it with: svc-agent check -c FILE; editors complete it with: svc-agent schema

# The roles that run on this host or in this pod; also --role, SVC_AGENT_ROLES.
roles: ${list(facts.roles)}

${serviceFiles(facts)}
# Where totals and offsets survive a restart.
# Default: $STATE_DIRECTORY, else /var/lib/svc-agent if writable, else .svc-agent beside this file.
# stateDirectory: /var/lib/svc-agent
# stateFsync: false               # true: power loss brings back nothing older, at the price of a sync each commit

# How metrics leave: at most one of pullmetrics, pushmetrics, hostedmetrics.
metrics:
  ${facts.clusterKnown ? '# tags: {datacenter: dc1}               # on every series; cluster comes from serviceConfig' : 'tags: {cluster: main}                    # on every series'}
  pullmetrics:
    listenAddress: ${facts.pullAddress}            # curl http://127.0.0.1:${facts.pullAddress.split(':').at(-1)}/metrics

# What is watched of each role. A value may come from the environment: "\${NAME:default}".
services:
${facts.roles.map((role, index) => service(role, index, facts.logKnown)).join('')}
# What the service depends on; svc-agent probe looks at it once, svc-agent probe --print-grants prints the rights.
# stores:
#   - {name: main, kind: postgres, address: "db.local:5432", user: svc_agent, password: {env: SVC_AGENT_DB_PASSWORD},
#      databases: {persistence: svc, visibility: svc_visibility}, schema: {persistence: "0.8", visibility: "0.9"}}
# domains:                                 # {domain} stands for each name
#   {watch: [orders], describe: {command: [cli, --domain, "{domain}", domain, describe]}}

# A series is one label set; past the limits series are counted together, never dropped in silence.
# limits: {seriesPerMetric: 2000, series: 50000}

# Status page and the agent's own health; "admin: ~" turns it off.
admin: {listenAddress: ${facts.adminAddress}}

# The agent's own log, to stderr.
log: {level: info, encoding: json}
`;
}

function serviceFiles({ serviceConfig }: StarterFacts): string {
  const files =
    serviceConfig.length > 0 ? list(serviceConfig) : '[/etc/svc/base.yaml, /etc/svc/production.yaml]';
  return `# The service's own files, merged in order: log files and addresses are taken from there.
${serviceConfig.length > 0 ? '' : '# '}serviceConfig: ${files}
${serviceConfig.length > 0 ? '' : '# '}scope: host                                # host: what is beside the roles; cluster: stores, clusters, archives; all
`;
}

/** Ports in the comments are those in use among such services, one for each role. */
function service(role: string, index: number, logKnown: boolean): string {
  const path = quoted(`/var/log/svc/${role}*.log`);
  const logs = `    logs:
      paths: [${path}]
      # rules:                             # metrics of your own from log entries
      #   - {name: svc_slow_requests, type: counter, match: {msg: slow request}, labels: {domain: wf-domain-name}}
`;
  return `  ${quoted(role)}:
${logKnown ? '    # logs come from serviceConfig\n' : logs}    # health: http://127.0.0.1:${7933 + index}/health
    # scrape: http://127.0.0.1:${8000 + index}/metrics
`;
}

/** What a first configuration needs to know of the service. */
interface StarterFacts {
  roles: readonly string[];
  serviceConfig: readonly string[];
  /** Where the agent's page is shown, out of the way of the roles. */
  pullAddress: string;
  adminAddress: string;
  /** Whether the service's files say where the log is. */
  logKnown: boolean;
  /** Whether they say which cluster this is. */
  clusterKnown: boolean;
}

/** Reads the service's files for `init`. Throws `usage` if one of them cannot be read. */
function readForStarter(
  files: readonly string[],
  named: readonly string[],
  { cwd, env }: { cwd: string; env: Readonly<Record<string, string | undefined>> },
): StarterFacts {
  const { tree, findings } = readServiceFiles(files, cwd, env);
  const [first] = findings;
  if (first) throw new AgentError('usage', { where: '--service-config', what: faultLine(first) });
  const found = entriesAt(tree, 'services').map(([name]) => name);
  const wanted = named.length > 0 ? named : found;
  const roles = wanted.length > 0 ? wanted : usualRoles;
  const taken = serviceListeners(tree, roles).map(({ address }) => address);
  const pullAddress = freeAddress('0.0.0.0', 9464, taken);
  return {
    roles,
    serviceConfig: files,
    pullAddress,
    adminAddress: freeAddress('127.0.0.1', 9465, [...taken, pullAddress]),
    logKnown: Boolean(textAt(tree, 'log', 'outputFile')),
    clusterKnown: textAt(tree, 'clusterGroupMetadata', 'currentClusterName') !== undefined,
  };
}

/** The first address from a port on that no role of the service has. */
function freeAddress(host: string, firstPort: number, taken: readonly string[]): string {
  const localHosts = machineAddresses();
  const others = taken.flatMap((address) => parseAddress(address) ?? []);
  let port = firstPort;
  while (others.some((other) => addressesConflict({ host, port }, other, localHosts))) port++;
  return formatAddress({ host, port });
}
