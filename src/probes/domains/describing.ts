import type { DomainDescription, FailoverEntry } from './description.ts';
import { type Fields, fieldsOf, fieldsOfLines, firstOf } from './fields.ts';
import { historyInMapText, historyOf } from './history.ts';
import { booleanOf, enabledOf, integerOf, namesOf, retentionOf, textOf } from './values.ts';

/** The spec's words, then those that clients and the raw answers of real services use. */
const paths = {
  name: ['name', 'domainname', 'domaininfo.name', 'namespaceinfo.name'],
  activeCluster: [
    'activecluster',
    'activeclustername',
    'replicationconfig.activeclustername',
    'replicationconfiguration.activeclustername',
  ],
  clusters: ['clusters', 'replicationconfig.clusters', 'replicationconfiguration.clusters'],
  global: ['globaldomain', 'isglobal', 'isglobaldomain', 'isglobalxdcdomain', 'isglobalnamespace'],
  failoverVersion: ['failoverversion', 'failoverinfo.failoverversion'],
  activeActive: ['isactiveactivedomain'],
  retention: [
    'retention',
    'retentiondays',
    'retentionindays',
    'configuration.workflowexecutionretentionperiodindays',
    'workflowexecutionretentionperiod',
    'config.workflowexecutionretentionttl',
  ],
  failoverHistory: ['failoverhistory', 'domaindata.failoverhistory', 'domaininfo.data.failoverhistory'],
} as const;

const archivalPaths = (archive: string) => [
  `${archive}archivalstatus`,
  `configuration.${archive}archivalstatus`,
  `config.${archive}archivalstate`,
  `archival.${archive}.status`,
];

/** Where free entries of a domain stand, of which the failover history may be one. */
const dataPaths = ['domaindata', 'domaininfo.data', 'data'];

/** Raw answers leave out what is false, zero or empty. */
const rawPaths = ['domaininfo', 'namespaceinfo'];

/** Reads what a client printed about a domain, JSON or text; undefined for an unknown shape. */
export function describingOf(printed: string): DomainDescription | undefined {
  const object = objectIn(printed);
  if (object === undefined) return known(descriptionOf(fieldsOfLines(printed), false));
  const inner = [object.domain, object.namespace].find(
    (value) => typeof value === 'object' && value !== null,
  );
  const fields = fieldsOf((inner ?? object) as Record<string, unknown>);
  const raw = inner !== undefined || rawPaths.some((path) => fields.has(path));
  return known(descriptionOf(fields, raw));
}

/** Lines before the answer, such as warnings, are passed over; so many of them may look like its beginning. */
const mostBeginnings = 20;

function objectIn(printed: string): Record<string, unknown> | undefined {
  const end = Math.max(printed.lastIndexOf('}'), printed.lastIndexOf(']')) + 1;
  const beginnings = [...printed.slice(0, end).matchAll(/^[ \t]*[{[]/gm)].slice(0, mostBeginnings);
  for (const { index } of beginnings) {
    try {
      const value: unknown = JSON.parse(printed.slice(index, end));
      const only: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value;
      if (typeof only === 'object' && only !== null && !Array.isArray(only)) {
        return only as Record<string, unknown>;
      }
    } catch {
      // A line that only looks like the beginning.
    }
  }
  return undefined;
}

function descriptionOf(fields: Fields, raw: boolean): DomainDescription {
  const archival = (archive: string) =>
    firstOf(fields, archivalPaths(archive), enabledOf) ?? (raw ? false : undefined);
  const global = firstOf(fields, paths.global, booleanOf) ?? (raw ? false : undefined);
  const failoverVersion = firstOf(fields, paths.failoverVersion, integerOf);
  return {
    name: firstOf(fields, paths.name, textOf),
    activeCluster: firstOf(fields, paths.activeCluster, textOf),
    clusters: firstOf(fields, paths.clusters, namesOf),
    global,
    failoverVersion: failoverVersion ?? (raw && global ? 0 : undefined),
    activeActive: firstOf(fields, paths.activeActive, booleanOf),
    retentionMs: firstOf(fields, paths.retention, retentionOf),
    archival: { history: archival('history'), visibility: archival('visibility') },
    failoverHistory: historyIn(fields),
  };
}

function historyIn(fields: Fields): readonly FailoverEntry[] | undefined {
  const history = firstOf(fields, paths.failoverHistory, historyOf);
  if (history || paths.failoverHistory.some((path) => fields.has(path))) return history;
  const data = firstOf(fields, dataPaths, (value) => value);
  if (typeof data === 'string') return historyInMapText(data);
  return data === undefined ? undefined : [];
}

/** Of an unknown shape nothing is believed: it must say where the domain is active, or what domain it is. */
function known(description: DomainDescription): DomainDescription | undefined {
  const { name, activeCluster, global, clusters } = description;
  return activeCluster !== undefined || (name !== undefined && (global ?? clusters) !== undefined)
    ? description
    : undefined;
}
