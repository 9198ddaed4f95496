import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { addressesConflict, dialHost, formatAddress, parseAddress } from '../../core/address.ts';
import { roles as usualRoles } from '../../core/catalog.ts';
import { AgentError, errorText, faultLine, nearest, systemCode } from '../../core/errors.ts';
import { machineAddresses } from '../config/environment.ts';
import { entriesAt, type MapNode, scalarAt, type TreeNode, textAt } from '../config/tree.ts';
import type { Discovered } from '../config/types.ts';
import { discover, serviceListeners, serviceStores } from '../service-config/discover.ts';
import { readServiceFiles } from '../service-config/read.ts';
import { configurationOptions, parseCommand, showHelp } from './arguments.ts';
import type { Io } from './io.ts';

const usage = `Usage: svc-agent init [FILE | --out FILE] [--service-config FILE]... [--role ROLE]...

Writes a commented starter configuration to FILE, or to standard output. It never overwrites a file, and leaves none
behind when it fails. With --service-config, everything that the service's files describe is filled in and enabled: roles,
logs, scrapes, health checks, stores, clusters, archives and domains. Only credentials have to be added.
`;

/** `svc-agent init`: a first configuration that `check` passes. */
export async function init(args: readonly string[], io: Io): Promise<number> {
  const { role, 'service-config': serviceConfig } = configurationOptions;
  const options = { role, 'service-config': serviceConfig, out: { type: 'string' } } as const;
  const { values, positionals } = parseCommand('init', args, options, 1);
  if (values.help) {
    showHelp('init', usage, io);
    return 0;
  }
  const files = values['service-config'] ?? [];
  const text = starter(readForStarter(files, values.role ?? [], io));
  const [file = values.out] = positionals;
  if (values.out !== undefined && file !== values.out) {
    const fault = { where: 'svc-agent init', what: 'two files', got: `${file} ${values.out}` };
    throw new AgentError('usage', { ...fault, allowed: 'name one' });
  }
  if (file === undefined) io.stdout(text);
  else {
    write(resolve(io.cwd, file), file, text);
    io.stderr(`${file} written; next: svc-agent check -c ${file}\n`);
  }
  return 0;
}

/** Throws `usage` if the file is there already, `internal` if it cannot be written. */
function write(path: string, file: string, text: string): void {
  const temporary = `${path}.new-${process.pid}`;
  try {
    // Whole or not at all: a link fails where the file is there, and the disk may be full before it is written.
    writeFileSync(temporary, text, { mode: 0o644 });
    linkSync(temporary, path);
  } catch (cause) {
    if (systemCode(cause) === 'EEXIST') {
      const fault = {
        where: file,
        what: 'already exists and is not overwritten',
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
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** A JSON string is a YAML string, whatever is in it. */
const quoted = (text: string): string =>
  /^[A-Za-z/][\w./-]*$/.test(text) && !isWord(text) ? text : JSON.stringify(text);
const list = (texts: readonly string[]): string => `[${texts.map(quoted).join(', ')}]`;

/** Texts that YAML reads as something else. */
const isWord = (text: string): boolean => /^(?:true|false|null)$/i.test(text);

/** A commented `agent.yaml` for what is known of the service. */
function starter(facts: StarterFacts): string {
  return `# svc-agent. Check it with: svc-agent check -c FILE; editors complete it with: svc-agent schema

# The roles that run on this host or in this pod; also --role, SVC_AGENT_ROLES.
roles: ${list([...facts.roles, ...facts.companions.map(({ name }) => name)])}

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
${facts.roles.map((role, index) => service(role, index, facts)).join('')}${facts.companions.map(({ name, scrape }) => `  ${name}:\n    scrape: ${scrape}\n`).join('')}
${dependencies(facts)}
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
${serviceConfig.length > 0 ? '' : '# '}scope: all                                 # host: what is beside the roles; cluster: stores, clusters, archives; all
`;
}

/** Without the service's files, the ports in the comments are those in use among such services. */
function service(
  role: string,
  index: number,
  { serviceConfig, logKnown, health, found }: StarterFacts,
): string {
  const path = quoted(`/var/log/svc/${role}*.log`);
  const logs = `    logs:
      paths: [${path}]
      # rules:                             # metrics of your own from log entries
      #   - {name: svc_slow_requests, type: counter, match: {msg: slow request}, labels: {domain: wf-domain-name}}
`;
  const fromFiles = found
    .filter(({ path: at }) => at.startsWith(`services.${role}.`))
    .map(
      ({ path: at, value }) =>
        `    # from serviceConfig: ${at.slice(`services.${role}.`.length)}: ${value}\n`,
    );
  const isKnown = (source: string) => fromFiles.some((line) => line.includes(`: ${source}.`));
  const url = health.get(role);
  const checked = url ? `    health: ${url}\n` : `    # health: http://127.0.0.1:${7933 + index}/health\n`;
  const noHealth = '    # health: no rpc.grpcPort and no rpc.port in serviceConfig, so nothing to ask\n';
  const scrape = isKnown('scrape') ? '' : `    # scrape: http://127.0.0.1:${8000 + index}/metrics\n`;
  return `  ${quoted(role)}:
${logKnown ? '' : logs}${fromFiles.join('')}${serviceConfig.length > 0 && !url ? noHealth : checked}${scrape}`;
}

/** Stores, clusters, archives and domains. */
function dependencies(facts: StarterFacts): string {
  const { stores, found } = facts;
  const title =
    '# What the service depends on; svc-agent probe --print-grants prints the rights that a user needs.\n';
  const example = `# stores:
#   - {name: main, kind: postgres, address: "db.local:5432", user: svc_agent, password: {env: SVC_AGENT_DB_PASSWORD},
#      databases: {persistence: svc, visibility: svc_visibility}, schema: {persistence: "0.8", visibility: "0.9"}}
`;
  const filled = stores.map(
    ({ name, about }) => `  - name: ${quoted(name)}  # from serviceConfig: ${about}
    user: svc_agent
    password: {env: SVC_AGENT_DB_PASSWORD}
`,
  );
  const rest = found
    .filter(({ path }) => /^(?:clusterGroupMetadata|archival|domainDefaults)/.test(path))
    .map(({ path, value }) => `# from serviceConfig: ${path}: ${value}\n`);
  return `${title}${stores.length > 0 ? `stores:\n${filled.join('')}` : example}${rest.join('')}${domainsOf(facts)}`;
}

/** The service's own command-line client. */
const client = 'cadence';

/** With the service's own files the domains of its log are watched; a domain that is not used is in no log. */
function domainsOf({ serviceConfig, domains, frontend, hasClient }: StarterFacts): string {
  const command = [
    ...[client, '--transport', 'grpc', '--address', frontend],
    ...['--domain', '{domain}', 'domain', 'describe', '--format', 'json'],
  ];
  const lines = [
    'domains:',
    `  watch: ${list(domains)}  # ${domains.length > 0 ? 'found in the log of the service' : 'none in the log of the service; add their names'}`,
  ];
  const describe = [
    `  describe:  # ${hasClient ? '' : `${client} is not in the PATH here; `}the client of the service; {domain} stands for each name, {address} for each cluster`,
    `    command: ${list(command)}`,
  ];
  const written = (isOn: boolean) => (line: string) => `${isOn ? '' : '# '}${line}\n`;
  const isKnown = serviceConfig.length > 0;
  return [...lines.map(written(isKnown)), ...describe.map(written(isKnown && hasClient))].join('');
}

/** What the starter configuration needs from the service's files. */
interface StarterFacts {
  roles: readonly string[];
  serviceConfig: readonly string[];
  /** Address of the agent's status page, at a port that no role uses. */
  pullAddress: string;
  adminAddress: string;
  /** Whether the service's files name the log. */
  logKnown: boolean;
  /** Whether they name this cluster. */
  clusterKnown: boolean;
  /** Every setting found in them; none of it secret. */
  found: readonly Discovered[];
  /** Health checks by role. */
  health: ReadonlyMap<string, string>;
  stores: readonly { name: string; about: string }[];
  /** host:port of the frontend, if it is known; `{address}` if the cluster group has it for each cluster. */
  frontend: string;
  /** Domains that the log of the service names. */
  domains: readonly string[];
  /** Whether the client is on this host. */
  hasClient: boolean;
  /** Programs beside the roles. */
  companions: readonly { name: string; scrape: string }[];
}

/** How much of the end of the service's log is searched for domains. */
const searchedBytes = 1024 * 1024;

/** Domains that the end of the service's log names, without the service's internal ones. */
function domainsIn(path: string): string[] {
  let text = '';
  try {
    // A pipe or a terminal, such as /dev/stdout, would be waited for.
    if (!statSync(path).isFile()) return [];
    const file = openSync(path, 'r');
    try {
      const from = Math.max(0, fstatSync(file).size - searchedBytes);
      const buffer = Buffer.alloc(searchedBytes);
      text = buffer.toString('utf8', 0, readSync(file, buffer, 0, searchedBytes, from));
    } finally {
      closeSync(file);
    }
  } catch {
    // The service has not written anything yet, or the agent cannot read it: the names have to be added.
  }
  const names = [...text.matchAll(/"wf-domain-name":"([\w.-]+)"/g)].map(([, name]) => name!);
  return [...new Set(names)].filter((name) => !/-(?:system|batcher)$/.test(name)).sort();
}

/** Whether the cluster group has the gRPC address of each enabled cluster's frontend. */
function knowsClusters(tree: TreeNode): boolean {
  const group = ['clusterGroupMetadata', 'clusterGroup'];
  const enabled = entriesAt(tree, ...group).filter(
    ([name]) => scalarAt(tree, ...group, name, 'enabled') !== false,
  );
  const isKnown = ([name]: [string, unknown]) =>
    textAt(tree, ...group, name, 'rpcAddress') !== undefined &&
    textAt(tree, ...group, name, 'rpcTransport') === 'grpc';
  return enabled.length > 0 && enabled.every(isKnown);
}

/** The health check of a role at its gRPC port; a role without one, as the worker, can only be connected to. */
function healthOf(tree: TreeNode, role: string): [string, string][] {
  const rpc = ['services', role, 'rpc'];
  const host = textAt(tree, ...rpc, 'bindOnIP') ?? '127.0.0.1';
  const ports = [
    ['grpc', scalarAt(tree, ...rpc, 'grpcPort')],
    ['tcp', scalarAt(tree, ...rpc, 'port')],
  ] as const;
  const [scheme, port] = ports.find(([, port]) => Number(port) > 0 && Number(port) < 65_536) ?? [];
  if (scheme === undefined) return [];
  return [[role, `${scheme}://${formatAddress({ host: dialHost(host), port: Number(port) })}`]];
}

/** Programs that load or check the service have configuration files of their own; their metrics are scraped like a role's. */
const companions = ['bench', 'canary'];

/** The scrape of each companion that the files configure, by the address that its file names. */
function companionsIn(tree: MapNode): { name: string; scrape: string }[] {
  const address = parseAddress(textAt(tree, 'metrics', 'pullmetrics', 'listenAddress') ?? '');
  return companions.flatMap((name) => {
    if (!tree.entries.has(name)) return [];
    const { host, port } = address ?? { host: '127.0.0.1', port: 8005 };
    return [{ name, scrape: `http://${formatAddress({ host: dialHost(host), port })}/metrics` }];
  });
}

/** Whether a program is in the path of whoever runs the command. */
function isInPath(program: string, { PATH = '' }: Readonly<Record<string, string | undefined>>): boolean {
  return PATH.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return folder !== '';
    } catch {
      return false;
    }
  });
}

/** Throws `usage` for a role that is none of the known ones. */
function refuseUnknown(named: readonly string[], known: readonly string[]): void {
  const unknown = named.find((role) => !known.includes(role));
  if (unknown === undefined) return;
  const near = nearest(unknown, known);
  const allowed = near ? `did you mean ${near}?` : `use ${known.join(', ')}`;
  throw new AgentError('usage', { where: '--role', what: 'unknown role', got: unknown, allowed });
}

/** Reads the service's files for `init`. Throws `usage` if one of them cannot be read. */
function readForStarter(
  files: readonly string[],
  named: readonly string[],
  { cwd, env }: { cwd: string; env: Readonly<Record<string, string | undefined>> },
): StarterFacts {
  const { tree, treeOf, findings } = readServiceFiles(files, cwd, env);
  const [first] = findings;
  if (first) throw new AgentError('usage', { where: '--service-config', what: faultLine(first) });
  const found = entriesAt(tree, 'services').map(([name]) => name);
  refuseUnknown(named, [...new Set([...found, ...usualRoles])]);
  const wanted = named.length > 0 ? named : found;
  const roles = wanted.length > 0 ? wanted : usualRoles;
  const taken = serviceListeners(tree, roles).map(({ address }) => address);
  const health = new Map(roles.flatMap((role) => healthOf(tree, role)));
  const bound = [...health.values()].map((url) => url.replace(/^\w+:\/\//, ''));
  const pullAddress = freeAddress('0.0.0.0', 9464, [...taken, ...bound]);
  const nothing: MapNode = { ...tree, entries: new Map() };
  const request = {
    service: tree,
    serviceOf: treeOf,
    agent: nothing,
    scope: 'all',
    roles,
    localHosts: machineAddresses(),
  } as const;
  const discovery = discover(request);
  const logs = new Set(roles.flatMap((role) => textAt(treeOf(role), 'log', 'outputFile') ?? []));
  return {
    found: discovery.itemsIn(discovery.tree),
    health,
    stores: serviceStores(tree).map(({ name, kind, address, databases }) => {
      const names = Object.values(databases).map((database) => database.name);
      return { name, about: `${kind} at ${address}, ${names.join(' and ')}` };
    }),
    frontend: knowsClusters(tree)
      ? '{address}'
      : (health.get('frontend')?.replace(/^\w+:\/\//, '') ?? 'frontend:7833'),
    domains: [...new Set([...logs].flatMap(domainsIn))].sort(),
    hasClient: isInPath(client, env),
    companions: named.length > 0 ? [] : companionsIn(tree),
    roles,
    serviceConfig: files,
    pullAddress,
    adminAddress: freeAddress('127.0.0.1', 9465, [...taken, ...bound, pullAddress]),
    logKnown: logs.size > 0,
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
