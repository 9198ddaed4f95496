import { isAbsolute, resolve } from 'node:path';
import { roles as catalogRoles } from '../../core/catalog.ts';
import { nearest } from '../../core/errors.ts';
import type { Parsed } from './blocks.ts';
import { crossFaults, warningsOf } from './consistency.ts';
import {
  defaultInstance,
  defaultStateDirectory,
  findConfig,
  machineAddresses,
  namedRoles,
  readFileText,
  unreadDigest,
  unwritableDirectory,
  unwritableFile,
} from './environment.ts';
import { fill, parsed } from './fill.ts';
import { misplacedKeys, misplacedNames } from './issues.ts';
import { checkLogPaths } from './log-paths.ts';
import { certificatesUnfit, secretFiles, secretsUnmet } from './secrets.ts';
import { adviceOn, unwatchedSections } from './service-files/advice.ts';
import { discover, serviceListeners } from './service-files/discover.ts';
import { dynamicConfigFile } from './service-files/dynamic-config.ts';
import { overlay, readServiceFiles, type ServiceFiles, without } from './service-files/read.ts';
import { violationsOf } from './service-files/violations.ts';
import {
  entriesAt,
  faultAt,
  isNull,
  isWithin,
  itemsAt,
  type MapNode,
  mayBeSecret,
  nodeAt,
  pathNamed,
  pathText,
  placedFault,
  placeOf,
  textAt,
} from './tree.ts';
import {
  type Discovered,
  type Loaded,
  type LoadRequest,
  type PlacedFault,
  type Scope,
  scopes,
} from './types.ts';
import { readYaml } from './yaml.ts';

interface CheckedConfig {
  tree: MapNode;
  discovered: readonly Discovered[];
  parsed?: Parsed;
  faults: PlacedFault[];
  findings: PlacedFault[];
}

interface AgentFile {
  /** The name of the file in messages. */
  name: string;
  /** The absolute path. */
  file: string;
  digest: string;
  tree: MapNode;
  faults: PlacedFault[];
}

/** Reads, validates and completes the configuration in this process, which loads zod and yaml. Never throws. */
export async function validate(request: LoadRequest): Promise<Loaded> {
  const agent = readAgent(request);
  if ('fault' in agent) {
    const { fault, file, digest } = agent;
    const watched = { [file]: digest };
    const nothing = { warnings: [], findings: [], advice: [], discovered: [] };
    return { ...nothing, faults: [fault], files: [file], watched };
  }
  const { tree } = agent;
  const roles = selectedRoles(tree, request);
  const names = serviceFileNames(tree, request);
  const service = readServiceFiles(names, request.cwd, request.env);
  const checked = check(agent, service, roles);
  const faults = [
    ...agent.faults,
    ...misplacedKeys(checked.faults, tree).filter((fault) => !isConsequence(fault, agent.faults)),
    ...ownLogFaults(tree, request.cwd),
    ...unknownRoles(tree, service, request, misplacedNames(checked.faults, tree)),
    ...builtFaults(checked.tree, request),
  ];
  const scope = scopeOf(tree);
  const findings = [
    ...namedFindings(service, names, tree),
    ...violationsOf(service, { local: scope !== 'cluster', cwd: request.cwd, roles }),
    ...(scope === 'host' ? [] : unwatchedSections(service.tree, checked.tree)),
    ...checked.findings,
    ...secretsUnmet(checked.tree, request),
    ...certificatesUnfit(checked.tree, request),
  ];
  const files = [agent.file, ...service.files];
  const others = secretFiles(checked.tree, request.cwd).map((file) => [file, undefined]);
  const watched = { ...Object.fromEntries(others), [agent.file]: agent.digest, ...service.digests };
  const { discovered } = checked;
  const advice = inOrder(adviceOn({ service: service.tree, agent: checked.tree, roles }));
  const loaded = { faults: inOrder(faults), findings: inOrder(findings), advice, discovered, files, watched };
  if (faults.length > 0 || !checked.parsed) return { ...loaded, warnings: [] };
  const written = checked.parsed.stateDirectory;
  const stateDirectory = written
    ? resolve(request.cwd, written)
    : defaultStateDirectory(agent.file, request.env);
  const config = fill(checked.parsed, {
    tree: checked.tree,
    roles,
    serviceConfig: names,
    dynamicConfig: dynamicConfigFile(service),
    clusterName:
      textAt(checked.tree, 'clusterGroupMetadata', 'currentClusterName') ??
      textAt(service.tree, 'clusterGroupMetadata', 'currentClusterName'),
    instance: defaultInstance(request.env),
    stateDirectory,
  });
  const logs = await checkLogPaths(config, checked.tree, request.cwd);
  return {
    ...loaded,
    findings: inOrder([...findings, ...stateFindings(tree, stateDirectory), ...logs.findings]),
    config,
    warnings: inOrder([...warningsOf(config, checked.tree, agent.name), ...logs.warnings]),
  };
}

/** Warnings about a state directory that cannot be written to: the agent runs without it. */
function stateFindings(tree: MapNode, directory: string): PlacedFault[] {
  const trouble = unwritableDirectory(directory);
  if (!trouble) return [];
  const message = `${trouble}, so totals and offsets do not survive a restart; use a writable directory`;
  return [placedFault(placeOf(tree, ['stateDirectory']), ['stateDirectory'], message, directory)];
}

/** Whether a fault is only a consequence of the file being unreadable at that place. */
function isConsequence({ path, what }: PlacedFault, unread: readonly PlacedFault[]): boolean {
  return unread.some((fault) => fault.path === path || (what === 'empty' && isWithin(fault.path, path)));
}

/** Findings in the service's files. A finding about a file as a whole is at the place where `agent.yaml` names the file. */
function namedFindings({ findings }: ServiceFiles, names: readonly string[], tree: MapNode): PlacedFault[] {
  return findings.map((finding) => {
    const path = ['serviceConfig', names.indexOf(finding.where)];
    if (!nodeAt(tree, ...path)) return finding;
    const isRelative = finding.what === 'missing' && !isAbsolute(finding.where);
    const from = isRelative ? '; a relative path starts in the directory where the agent is started' : '';
    return faultAt(tree, path, `${finding.what}${finding.allowed ? `; ${finding.allowed}${from}` : ''}`);
  });
}

/** The fault that was found while the configuration was built, at its place. */
function builtFaults(tree: MapNode, { built }: LoadRequest): PlacedFault[] {
  if (!built) return [];
  const { where, what, got, allowed } = built;
  const path = pathNamed(tree, where);
  const isWhole = pathText(path) === where;
  const message = `${isWhole ? '' : `${where}: `}${what}${allowed ? `; ${allowed}` : ''}`;
  const shown = mayBeSecret(path) ? undefined : got;
  return [placedFault(placeOf(tree, path), isWhole ? path : [], message, shown)];
}

function readAgent({
  file,
  serviceConfig,
  env,
  cwd,
}: LoadRequest): AgentFile | { fault: PlacedFault; file: string; digest?: string } {
  const name = file ?? findConfig(cwd);
  const place = { file: name ?? 'agent.yaml', line: 1, column: 1 };
  const empty: MapNode = { kind: 'map', place, entries: new Map() };
  if (name === undefined) {
    const absent = resolve(cwd, 'agent.yaml');
    if (serviceConfig && serviceConfig.length > 0)
      return { name: 'agent.yaml', file: absent, digest: unreadDigest, tree: empty, faults: [] };
    const allowed = 'name one with -c, or write one with svc-agent init';
    const what = 'no configuration here, and none in /etc/svc-agent/agent.yaml';
    return { fault: { where: 'agent.yaml', what, allowed, path: '' }, file: absent, digest: unreadDigest };
  }
  const path = resolve(cwd, name);
  const content = readFileText(path, name);
  if ('fault' in content) return { ...content, file: path };
  const { tree, faults } = readYaml(content.text, name, env);
  if (tree?.entries.size === 0 && faults.length === 0) {
    faults.push(placedFault(place, [], 'empty; write a configuration with svc-agent init'));
  }
  return { name, file: path, digest: content.digest, tree: tree ? withServices(tree) : empty, faults };
}

/** Faults of the agent's own log file (spec, Logging configuration). */
function ownLogFaults(tree: MapNode, cwd: string): PlacedFault[] {
  const file = textAt(tree, 'log', 'outputFile');
  const trouble = file === undefined ? undefined : unwritableFile(resolve(cwd, file));
  if (!trouble) return [];
  const message = `${trouble}; name a file in a directory that exists and is writable`;
  return [faultAt(tree, ['log', 'outputFile'], message)];
}

/** The tree with empty services (`frontend:`), which exist, unlike other nulls. */
function withServices(tree: MapNode): MapNode {
  const services = tree.entries.get('services');
  if (services?.node.kind !== 'map') return tree;
  const entries = new Map(services.node.entries);
  for (const [name, { key, node }] of entries) {
    if (isNull(node)) entries.set(name, { key, node: { kind: 'map', place: key, entries: new Map() } });
  }
  const node: MapNode = { ...services.node, entries };
  return { ...tree, entries: new Map(tree.entries).set('services', { key: services.key, node }) };
}

/** Service files from the option, else from the file. Entries that are not strings are reported separately. */
function serviceFileNames(tree: MapNode, { serviceConfig }: LoadRequest): readonly string[] {
  if (serviceConfig && serviceConfig.length > 0) return serviceConfig;
  return itemsAt(tree, 'serviceConfig').flatMap((item) =>
    item.kind === 'scalar' && typeof item.value === 'string' && item.value !== '' ? item.value : [],
  );
}

/** Selected services in the order of `services`, then those that are only named by an option or the service's files. */
function selectedRoles(tree: MapNode, { roles, env }: LoadRequest): readonly string[] {
  const written = nodeAt(tree, 'roles')
    ? itemsAt(tree, 'roles').flatMap((item) => {
        return item.kind === 'scalar' && typeof item.value === 'string' ? item.value : [];
      })
    : undefined;
  const services = nodeAt(tree, 'services');
  const keys = services?.kind === 'map' ? [...services.entries.keys()] : [];
  const wanted = new Set(namedRoles(roles, env) ?? written ?? keys);
  return [...keys.filter((key) => wanted.has(key)), ...[...wanted].filter((role) => !keys.includes(role))];
}

/**
 * Faults for roles that no service has. Service files without services belong to one role of any name; unreadable files may
 * contain any role. Misplaced names are keys of a service.
 */
function unknownRoles(
  tree: MapNode,
  service: ServiceFiles,
  { roles, env }: LoadRequest,
  misplaced: readonly string[],
): PlacedFault[] {
  const inFiles = entriesAt(service.tree, 'services').map(([name]) => name);
  const inAgent = entriesAt(tree, 'services')
    .map(([name]) => name)
    .filter((name) => !misplaced.includes(name));
  const known = [...new Set([...inAgent, ...inFiles])];
  const isOpen = service.files.length > 0 && (inFiles.length === 0 || service.findings.length > 0);
  if (isOpen) return [];
  const isOfCatalog = (role: string) => (catalogRoles as readonly string[]).includes(role);
  const allowed = (role: string) => {
    const near = nearest(role, known);
    // Any name may be a service, so the name that is not a role of the product is reported as misspelled.
    if (near && isOfCatalog(role) && !isOfCatalog(near)) {
      return `services has ${near} instead; correct the name there`;
    }
    if (near) return `did you mean ${near}?`;
    return known.length > 0 ? `services has ${known.join(', ')}` : 'services has none';
  };
  const what = 'unknown role';
  const isReserved = (role: string) => role === 'agent' || role === 'unknown';
  const named = namedRoles(roles, env);
  if (named) {
    const where = roles && roles.length > 0 ? '--role' : 'SVC_AGENT_ROLES';
    const unknown = named.filter((role) => !known.includes(role));
    return unknown.map((role) => ({ where, what, got: role, allowed: allowed(role), path: 'roles' }));
  }
  return itemsAt(tree, 'roles').flatMap((item, index) => {
    if (item.kind !== 'scalar' || typeof item.value !== 'string' || isReserved(item.value)) return [];
    if (known.includes(item.value)) return [];
    return [faultAt(tree, ['roles', index], `${what}; ${allowed(item.value)}`)];
  });
}

function scopeOf(tree: MapNode): Scope {
  const written = textAt(tree, 'scope');
  return scopes.find((scope) => scope === written) ?? 'host';
}

/** Validates the file merged over the discovered settings. If that fails, invalid parts of the service's files are left out. */
function check(agent: AgentFile, service: ServiceFiles, roles: readonly string[]): CheckedConfig {
  const localHosts = machineAddresses();
  const discovery = discover({
    service: service.tree,
    serviceOf: service.treeOf,
    agent: agent.tree,
    scope: scopeOf(agent.tree),
    roles,
    localHosts,
  });
  const listeners = serviceListeners(service.tree, roles);
  const attempt = (found: MapNode) => {
    const tree = overlay(agent.tree, found);
    const result = parsed(tree);
    const faults = [
      ...result.faults,
      ...crossFaults({ tree, roles, localHosts, serviceListeners: listeners }),
    ];
    return { tree, parsed: result.data, faults };
  };
  const isOwn = ({ place }: PlacedFault) => place === undefined || place.file === agent.name;
  const whole = attempt(discovery.tree);
  const findings = whole.faults.filter((fault) => !isOwn(fault));
  let result = whole;
  if (findings.length > 0) result = attempt(without(discovery.tree, findings));
  if (!result.faults.every(isOwn)) result = attempt({ ...discovery.tree, entries: new Map() });
  return { ...result, discovered: discovery.itemsIn(result.tree), findings };
}

/** The faults in the order of the files, without duplicates. */
function inOrder(faults: readonly PlacedFault[]): PlacedFault[] {
  const seen = new Set<string>();
  return [...faults]
    .sort(
      (one, other) =>
        (one.place?.line ?? 0) - (other.place?.line ?? 0) ||
        (one.place?.column ?? 0) - (other.place?.column ?? 0),
    )
    .filter(({ where, what }) => !seen.has(`${where} ${what}`) && seen.add(`${where} ${what}`));
}
