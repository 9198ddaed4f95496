import { agentMetrics } from '../../core/agent-metrics.ts';
import { nearest } from '../../core/errors.ts';
import type { BackupType } from '../../core/reasons.ts';
import { foldTag, roleOf } from '../../core/registry/labels.ts';
import { isPerCluster, placeholdersIn } from '../../probes/domains/description.ts';
import { volumeWarning } from '../../reporters/block.ts';
import { literalSecrets, scalarsOf } from './secrets.ts';
import {
  archivalFaults,
  type ConsistencyRule,
  clusterFaults,
  distinctListeners,
  listenersApart,
  oneReporter,
  type RuleInput,
} from './shared-rules.ts';
import {
  entriesAt,
  faultAt,
  itemsAt,
  type MapNode,
  mayBeSecret,
  nodeAt,
  placedFault,
  placeOf,
  plainValue,
  scalarAt,
  type TreeNode,
  type TreePath,
  textAt,
} from './tree.ts';
import type { AgentConfig, PlacedFault } from './types.ts';

/** Faults for names that a list contains twice. */
function twice(tree: Parameters<ConsistencyRule>[0]['tree'], list: string): PlacedFault[] {
  const seen = new Map<string, number>();
  return itemsAt(tree, list).flatMap((_, index) => {
    const path: TreePath = [list, index, 'name'];
    const name = textAt(tree, ...path);
    if (name === undefined) return [];
    const first = seen.get(name);
    if (first === undefined) seen.set(name, index);
    return first === undefined
      ? []
      : [faultAt(tree, path, `already the name of ${list}[${first}]; use each name once`)];
  });
}

const distinctNames: ConsistencyRule = ({ tree }) => [...twice(tree, 'stores'), ...twice(tree, 'backups')];

/** Types of backups that need a store; backups of the type `config` contain files. */
const storeTypes: ReadonlySet<string> = new Set<BackupType>(['full', 'incremental', 'log']);

/** A fault if the text at a path is not the name of a configured store. */
function unknownStore(tree: TreeNode, path: TreePath): PlacedFault[] {
  const store = textAt(tree, ...path);
  const stores = itemsAt(tree, 'stores').flatMap((_, index) => textAt(tree, 'stores', index, 'name') ?? []);
  if (store === undefined || stores.includes(store)) return [];
  const near = nearest(store, stores);
  const known = stores.length === 0 ? 'add it to stores, which is empty' : `known are ${stores.join(', ')}`;
  return [faultAt(tree, path, `no such store; ${near ? `did you mean ${near}?` : known}`)];
}

const rehearsedStores: TreePath = ['recovery', 'rehearsal', 'stores'];

/** Faults for rehearsals of a store that is not configured: they would never run. */
const rehearsalsOfStores: ConsistencyRule = ({ tree }) =>
  itemsAt(tree, ...rehearsedStores).flatMap((_, index) => unknownStore(tree, [...rehearsedStores, index]));

/** Faults for backups of a store that is not configured. */
const backupsOfStores: ConsistencyRule = ({ tree }) =>
  itemsAt(tree, 'backups').flatMap((_, index) => {
    const path: TreePath = ['backups', index, 'store'];
    if (scalarAt(tree, ...path) !== undefined) return unknownStore(tree, path);
    const type = textAt(tree, 'backups', index, 'type');
    return type === undefined || !storeTypes.has(type)
      ? []
      : [faultAt(tree, path, 'missing; name an entry of stores')];
  });

/** A fault if the limit per metric is above the total limit. */
const limitsFit: ConsistencyRule = ({ tree }) => {
  const [each, all] = [
    scalarAt(tree, 'limits', 'seriesPerMetric'),
    scalarAt(tree, 'limits', 'series') ?? 50_000,
  ];
  if (typeof each !== 'number' || typeof all !== 'number' || each <= all) return [];
  return [
    faultAt(
      tree,
      ['limits', 'seriesPerMetric'],
      `more than limits.series, which is ${all}; use at most ${all}`,
    ),
  ];
};

interface NamedRule {
  path: TreePath;
  service: string;
  name: string;
  type: string | undefined;
  buckets: string;
}

function namedRules(tree: TreeNode): NamedRule[] {
  return entriesAt(tree, 'services').flatMap(([service]) =>
    itemsAt(tree, 'services', service, 'logs', 'rules').flatMap((_, index) => {
      const path: TreePath = ['services', service, 'logs', 'rules', index];
      const name = textAt(tree, ...path, 'name');
      const buckets = nodeAt(tree, ...path, 'buckets');
      if (name === undefined) return [];
      return [
        {
          path,
          service,
          name,
          type: textAt(tree, ...path, 'type'),
          buckets: JSON.stringify(buckets && plainValue(buckets)),
        },
      ];
    }),
  );
}

const parts = ['_bucket', '_sum', '_count'] as const;
const ownNames: ReadonlyMap<string, string> = new Map(agentMetrics.map(({ name, kind }) => [name, kind]));

/** Faults for log rules whose metric names conflict with another family. */
const ruleNamesApart: ConsistencyRule = ({ tree }) => {
  const rules = namedRules(tree);
  const histograms = new Set(rules.filter(({ type }) => type === 'histogram').map(({ name }) => name));
  return rules.flatMap((rule, index) => {
    const path = [...rule.path, 'name'];
    const refuse = (message: string): PlacedFault[] => [faultAt(tree, path, message)];
    if (rule.name.startsWith('svc_agent_') || ownNames.has(rule.name)) {
      return refuse('a metric of the agent itself; use another name');
    }
    const part = parts.find((suffix) => rule.name.endsWith(suffix));
    const whole = part && rule.name.slice(0, -part.length);
    if (whole && (histograms.has(whole) || ownNames.get(whole) === 'histogram')) {
      return refuse(`taken by the histogram ${whole}; use another name`);
    }
    const earlier = rules.slice(0, index).find(({ name }) => name === rule.name);
    if (!earlier) return [];
    if (earlier.service === rule.service) return refuse('duplicate rule name; use each name once');
    if (earlier.type !== rule.type)
      return refuse(`a ${earlier.type} in ${earlier.service}; use one type for one name`);
    return earlier.buckets === rule.buckets
      ? []
      : refuse(`other buckets in ${earlier.service}; use the same for one name`);
  });
};

/** Faults for log rules with forbidden labels: `limits.forbiddenTags` applies to them, too. */
const rulesWithinForbiddenTags: ConsistencyRule = ({ tree }) => {
  const forbidden = new Set(
    itemsAt(tree, 'limits', 'forbiddenTags').flatMap((item) =>
      item.kind === 'scalar' && typeof item.value === 'string' ? foldTag(item.value) : [],
    ),
  );
  if (forbidden.size === 0) return [];
  return namedRules(tree).flatMap(({ path }) =>
    entriesAt(tree, ...path, 'labels').flatMap(([label]) =>
      forbidden.has(foldTag(label))
        ? [
            faultAt(
              tree,
              [...path, 'labels', label],
              'in limits.forbiddenTags; remove it there, or use another label',
            ),
          ]
        : [],
    ),
  );
};

const describeCommand: TreePath = ['domains', 'describe', 'command'];
const group: TreePath = ['clusterGroupMetadata'];

/** Faults for a describe command with `{cluster}` or `{address}` if there are no clusters, or no addresses of them. */
const describedThroughClusters: ConsistencyRule = ({ tree }) => {
  const command = itemsAt(tree, ...describeCommand).map((_, index) =>
    String(scalarAt(tree, ...describeCommand, index)),
  );
  if (!isPerCluster(command)) return [];
  if (nodeAt(tree, ...group) === undefined) {
    return [
      faultAt(
        tree,
        describeCommand,
        'asks each cluster, but no clusters are known; set clusterGroupMetadata',
      ),
    ];
  }
  if (!placeholdersIn(command).address) return [];
  return entriesAt(tree, ...group, 'clusterGroup').flatMap(([name]) => {
    const address = [...group, 'clusterGroup', name, 'rpcAddress'];
    const isAsked = scalarAt(tree, ...group, 'clusterGroup', name, 'enabled') !== false;
    if (!isAsked || textAt(tree, ...address) !== undefined) return [];
    return [faultAt(tree, address, 'missing, while domains.describe.command has {address}; set host:port')];
  });
};

/** Every rule between parts of `agent.yaml`. */
const rules: readonly ConsistencyRule[] = [
  oneReporter,
  distinctListeners,
  listenersApart,
  ruleNamesApart,
  rulesWithinForbiddenTags,
  distinctNames,
  backupsOfStores,
  rehearsalsOfStores,
  limitsFit,
  ({ tree }) => clusterFaults(tree),
  describedThroughClusters,
  ({ tree }) => archivalFaults(tree),
];

export function crossFaults(whole: RuleInput): PlacedFault[] {
  return rules.flatMap((rule) => rule(whole));
}

/** Warnings about valid settings that are most likely mistakes. */
export function warningsOf(config: AgentConfig, tree: MapNode, file: string): PlacedFault[] {
  return [
    ...literalSecrets(tree, file),
    ...nothingReported(config, tree),
    ...nothingWatched(config, tree),
    ...peersUnreachable(config, tree),
    ...domainsUndescribed(config, tree),
    ...manySamples(config, tree),
    ...timersApart(config, tree),
    ...rolesRenamed(config, tree),
    ...shellVariables(tree),
  ];
}

/** Warnings about variables in the syntax of a shell: `$NAME` is plain text here, and the default of `${NAME:-x}` is `-x`. */
function shellVariables(tree: MapNode): PlacedFault[] {
  return [...scalarsOf(tree)].flatMap(({ node, path }) => {
    const text = node.written ?? node.value;
    if (typeof text !== 'string' || mayBeSecret(path)) return [];
    const [, dashed] = /\$\{([A-Za-z_]\w*):-/.exec(text) ?? [];
    const [, bare] = /^\$([A-Za-z_]\w*)$/.exec(text) ?? [];
    const message =
      dashed !== undefined
        ? `the default of ${dashed} begins with a dash; write \${${dashed}:default} without the dash`
        : bare !== undefined && `plain text here, not a variable; write \${${bare}}`;
    return message ? [placedFault(placeOf(tree, path), path, message, text)] : [];
  });
}

/** Warnings about roles whose timers get another type than those of the first role: a metric has one type. */
function timersApart({ metrics, services }: AgentConfig, tree: MapNode): PlacedFault[] {
  const received = services.filter(({ selected, statsd }) => selected && statsd);
  const typeOf = ({ metrics: own }: AgentConfig['services'][number]) => {
    const { reporter } = own ?? metrics;
    return (reporter?.kind === 'pullmetrics' && reporter.options.timerType) || 'histogram';
  };
  const [first, ...others] = received;
  return others
    .filter((other) => typeOf(other) !== typeOf(first!))
    .map((other) => {
      const path = [
        ...(other.metrics ? ['services', other.name] : []),
        'metrics',
        'pullmetrics',
        'timerType',
      ];
      const plurals = { histogram: 'histograms', summary: 'summaries' } as const;
      const message =
        `timers of ${other.name} become ${plurals[typeOf(other)]}, those of ${first!.name} ${plurals[typeOf(first!)]}; ` +
        'a metric has one type, so a timer that both send is refused for one of them; use the same type for all roles';
      return placedFault(placeOf(tree, path), path, message);
    });
}

const noKeys: ReadonlySet<string> = new Set();

/** Warnings about roles of the spec under another name, such as `cadence-history`. */
function rolesRenamed({ services }: AgentConfig, tree: MapNode): PlacedFault[] {
  const names = new Set(services.map(({ name }) => name));
  return services.flatMap(({ name }) => {
    const role = roleOf(name, noKeys);
    if (role === name || names.has(role)) return [];
    const path = ['services', name];
    const message = `rules, dashboards and the verdict know this role as ${role}; name it ${role}, unless your rules expect svc_service="${name}"`;
    return [placedFault(placeOf(tree, path), path, message)];
  });
}

function nothingReported({ metrics, services }: AgentConfig, tree: MapNode): PlacedFault[] {
  if (metrics.reporter || services.some((service) => service.metrics?.reporter)) return [];
  const message =
    'no reporter, so only the admin listener shows anything; set pullmetrics, pushmetrics or hostedmetrics';
  return [placedFault(placeOf(tree, ['metrics']), ['metrics'], message)];
}

function nothingWatched({ services }: AgentConfig, tree: MapNode): PlacedFault[] {
  return services
    .filter(
      ({ selected, logs, health, scrape, statsd }) => selected && !logs && !health && !scrape && !statsd,
    )
    .map(({ name }) => {
      const path = ['services', name];
      return placedFault(placeOf(tree, path), path, 'nothing to watch; set logs, health, scrape or statsd');
    });
}

/** Warnings about peers without an address. The agent of a host needs only their names, for the replication lag. */
function peersUnreachable(
  { clusterGroupMetadata: group, scope, services }: AgentConfig,
  tree: MapNode,
): PlacedFault[] {
  if (scope === 'host' && services.some(({ selected, scrape }) => selected && scrape)) return [];
  const peers = group?.clusters.filter(({ enabled, name }) => enabled && name !== group.currentClusterName);
  // A group that has only names shows where domains are active; another agent probes its peers.
  if (!group?.clusters.some(({ rpcAddress }) => rpcAddress !== undefined)) return [];
  return (peers ?? [])
    .filter(({ rpcAddress }) => rpcAddress === undefined)
    .map(({ name }) => {
      const path = ['clusterGroupMetadata', 'clusterGroup', name, 'rpcAddress'];
      return placedFault(
        placeOf(tree, path),
        path,
        'missing, so the agent does not check whether the cluster answers; set host:port',
      );
    });
}

function domainsUndescribed({ domains }: AgentConfig, tree: MapNode): PlacedFault[] {
  if (!domains || domains.watch.length === 0 || domains.describe) return [];
  const path = ['domains', 'describe'];
  const message = 'missing, so the watched domains are not checked; set command';
  return [placedFault(placeOf(tree, path), path, message)];
}

/** Warnings about many samples: hosted platforms bill by samples, and the default interval is that of a local reporter. */
function manySamples({ metrics, services }: AgentConfig, tree: MapNode): PlacedFault[] {
  const blocks = [
    { path: ['metrics'], block: metrics },
    ...services.map(({ name, metrics: own }) => ({ path: ['services', name, 'metrics'], block: own })),
  ];
  return blocks.flatMap(({ path: above, block }) => {
    if (block?.reporter?.kind !== 'hostedmetrics') return [];
    const message = volumeWarning(block.reportingIntervalMs);
    const path = [...above, 'reportingInterval'];
    return message === undefined ? [] : [placedFault(placeOf(tree, path), path, message)];
  });
}
