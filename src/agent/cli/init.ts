import { linkSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { AgentError, errorText, systemCode, usageError } from '../../core/errors.ts';
import { usualStoreUser } from '../../probes/stores/store-options.ts';
import { command, configurationOptions } from './arguments.ts';
import { client, readForStarter, type StarterFacts } from './starter-facts.ts';
import { type StarterStore, starterPassword } from './starter-stores.ts';

const usage = `Usage: svc-agent init [FILE | --out FILE] [--service-config FILE]... [--role ROLE]...

Writes a commented starter configuration to FILE, or to standard output. It never overwrites a file, and leaves no
file behind when it fails. With --service-config, everything that the service's files describe is filled in and enabled: roles,
logs, scrapes, health checks, stores, clusters, archives and domains. Only credentials have to be added. If the variable
${starterPassword} holds the password of the user ${usualStoreUser}, init also asks each store for the versions of its
schemas.
`;

const { role, 'service-config': serviceConfig } = configurationOptions;
const options = { role, 'service-config': serviceConfig, out: { type: 'string' } } as const;

/** Runs `svc-agent init`: writes a first configuration that passes `check`. */
export const init = command({ name: 'init', usage, options, most: 1 }, async (values, io, [given]) => {
  const files = values['service-config'] ?? [];
  const text = starter(await readForStarter(files, values.role ?? [], io));
  const file = given ?? values.out;
  if (values.out !== undefined && file !== values.out) {
    throw usageError('svc-agent init', 'two files', `${file} ${values.out}`, 'name one');
  }
  if (file === undefined) io.stdout(text);
  else {
    write(resolve(io.cwd, file), file, text);
    io.stderr(`${file} written; next: svc-agent check -c ${file}\n`);
  }
  return 0;
});

/** Writes the file. Throws `usage` if it exists already, `internal` if it cannot be written. */
function write(path: string, file: string, text: string): void {
  const temporary = `${path}.new-${process.pid}`;
  try {
    // The file is written completely or not at all: a link fails if the file exists, and the disk may become full before the end.
    writeFileSync(temporary, text, { mode: 0o644 });
    linkSync(temporary, path);
  } catch (cause) {
    if (systemCode(cause) === 'EEXIST') {
      const what = 'already exists and is not overwritten';
      throw usageError(file, what, undefined, 'name another file', cause);
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

/** Quotes a text: a JSON string is a YAML string, whatever is in it. */
const quoted = (text: string): string =>
  /^[A-Za-z/][\w./-]*$/.test(text) && !isWord(text) ? text : JSON.stringify(text);
const list = (texts: readonly string[]): string => `[${texts.map(quoted).join(', ')}]`;

/** Whether YAML reads a text as something other than a string. */
const isWord = (text: string): boolean => /^(?:true|false|null)$/i.test(text);

/** A commented `agent.yaml` for what is known about the service. */
function starter(facts: StarterFacts): string {
  return `# svc-agent. Check it with: svc-agent check -c FILE; editors complete it with: svc-agent schema

# The roles that run on this host or in this pod; also --role, SVC_AGENT_ROLES.
roles: ${list([...facts.roles, ...facts.companions.map(({ name }) => name)])}

${serviceFiles(facts)}
# Where totals and offsets survive a restart.
# Default: $STATE_DIRECTORY, else /var/lib/svc-agent if writable, else .svc-agent beside this file.
# stateDirectory: /var/lib/svc-agent
# stateFsync: false               # true: power loss brings back nothing older, at the price of a sync each commit

# How the agent exports metrics: at most one of pullmetrics, pushmetrics, hostedmetrics.
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

/** The lines for the service. Without the service's files, the ports in the comments are the usual ports of such services. */
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

/** The lines for stores, clusters, archives and domains. */
function dependencies(facts: StarterFacts): string {
  const { stores, found } = facts;
  const title =
    '# What the service depends on; svc-agent probe --print-grants prints the rights that a user needs.\n';
  const example = `# stores:
#   - {name: main, kind: postgres, address: "db.local:5432", user: svc_agent, password: {env: SVC_AGENT_DB_PASSWORD},
#      databases: {persistence: svc, visibility: svc_visibility}, schema: {persistence: "0.8", visibility: "0.9"}}
`;
  const filled = stores.map(
    (store) => `  - name: ${quoted(store.name)}  # from serviceConfig: ${store.about}
    user: ${usualStoreUser}
    password: {env: ${starterPassword}}
${schemaOf(store)}`,
  );
  const rest = found
    .filter(({ path }) => /^(?:clusterGroupMetadata|archival|domainDefaults)/.test(path))
    .map(({ path, value }) => `# from serviceConfig: ${path}: ${value}\n`);
  return `${title}${stores.length > 0 ? `stores:\n${filled.join('')}` : example}${rest.join('')}${domainsOf(facts)}`;
}

/** The lines for the versions that the schemas have now: the present service does not expect an older schema. */
function schemaOf({ schema, unknown }: StarterStore): string {
  const versions = Object.entries(schema).map(
    ([database, version]) => `${database}: ${JSON.stringify(version)}`,
  );
  const found = `    schema: {${versions.join(', ')}}  # found in the store\n`;
  return `${versions.length > 0 ? found : ''}${unknown ? `    # schema: not all filled in: ${unknown}\n` : ''}`;
}

/**
 * The lines for domains. With the service's own files, the domains that its log names are watched; a domain that is not used is
 * in no log.
 */
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
