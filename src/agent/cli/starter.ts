import type { StarterFacts } from '../service-config/starter-facts.ts';

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
