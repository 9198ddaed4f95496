import type { Change, StatusFacts } from '../report.ts';

/** What is compared between two reports to find changes. */
interface Compared {
  schemas: ReadonlyMap<string, string>;
  versions: ReadonlyMap<string, string>;
  restarts: ReadonlyMap<string, number>;
  failovers: ReadonlyMap<string, number>;
  certificates: ReadonlyMap<string, string>;
  configuration: string | undefined;
  dynamic: ReadonlyMap<string, string>;
}

function comparedOf({ probes, versions, restarts, domains, certificates, config }: StatusFacts): Compared {
  const schemas = probes.flatMap(({ kind, name, last }): [string, string][] => {
    const schema = last?.ok === true && kind === 'store' ? last.details?.schema : undefined;
    return typeof schema === 'string' ? [[name.slice('store/'.length), schema]] : [];
  });
  return {
    schemas: new Map(schemas),
    versions: new Map(Object.entries(versions)),
    restarts: new Map(Object.entries(restarts)),
    failovers: new Map(domains.map(({ domain, failovers }) => [domain, failovers])),
    certificates: new Map(certificates.map(({ probe, notAfter }) => [probe, notAfter])),
    configuration: config.changedAt,
    dynamic: new Map(config.dynamic?.changedAt ? [[config.dynamic.file, config.dynamic.changedAt]] : []),
  };
}

/** Entries that existed before and have another value now. `isAnother` decides which values are different. */
const altered = <T>(
  before: ReadonlyMap<string, T>,
  now: ReadonlyMap<string, T>,
  isAnother = (known: T, value: T): boolean => known !== value,
): [string, T, T][] =>
  [...now].flatMap(([key, value]): [string, T, T][] => {
    const known = before.get(key);
    return known !== undefined && isAnother(known, value) ? [[key, known, value]] : [];
  });

/**
 * The changes between two reports. A change has the time that its source gives, or else the time of the report that shows it
 * first.
 */
function changesBetween(before: Compared, now: Compared, facts: StatusFacts): Change[] {
  const { now: at } = facts;
  const failedOver = (domain: string) => facts.domains.find((one) => one.domain === domain);
  const isMore = (known: number, value: number) => value > known;
  return [
    ...(now.configuration !== undefined && now.configuration !== before.configuration
      ? [
          {
            at: now.configuration,
            kind: 'configuration',
            what: 'the agent loaded a new configuration',
          } as const,
        ]
      : []),
    ...altered(before.dynamic, now.dynamic).map(
      ([file, , changedAt]): Change => ({
        at: changedAt,
        kind: 'configuration',
        what: `the service’s dynamic configuration changed: ${file}`,
      }),
    ),
    ...altered(before.schemas, now.schemas).map(
      ([store, old, next]): Change => ({
        at,
        kind: 'schema',
        what: `the schema of ${store} changed from ${old} to ${next}`,
      }),
    ),
    ...altered(before.versions, now.versions).map(
      ([role, old, next]): Change => ({
        at,
        kind: 'version',
        what: `the version of ${role} changed from ${old} to ${next}`,
      }),
    ),
    ...altered(before.restarts, now.restarts, isMore).map(
      ([role]): Change => ({ at, kind: 'restart', role, what: `role ${role} restarted` }),
    ),
    ...altered(before.failovers, now.failovers, isMore).map(([domain]): Change => {
      const { activeCluster, lastFailover } = failedOver(domain) ?? {};
      const to = activeCluster ? ` to ${activeCluster}` : '';
      return { at: lastFailover ?? at, kind: 'failover', what: `domain ${domain} failed over${to}` };
    }),
    ...altered(before.certificates, now.certificates).map(
      ([probe, , next]): Change => ({
        at,
        kind: 'certificate',
        what: `${probe} has a new certificate, valid until ${next}`,
      }),
    ),
  ];
}

/** Finds what changed from one report to the next. */
export function createChangeFinder(): (facts: StatusFacts) => Change[] {
  /** The last reports merged, so that a role that is down for a while is compared with its state before that. */
  let known: Compared | undefined;
  return (facts) => {
    const now = comparedOf(facts);
    const found = known ? changesBetween(known, now, facts) : [];
    const merged = <T>(before: ReadonlyMap<string, T> | undefined, next: ReadonlyMap<string, T>) =>
      new Map([...(before ?? []), ...next]);
    known = {
      dynamic: merged(known?.dynamic, now.dynamic),
      schemas: merged(known?.schemas, now.schemas),
      versions: merged(known?.versions, now.versions),
      restarts: merged(known?.restarts, now.restarts),
      failovers: merged(known?.failovers, now.failovers),
      certificates: merged(known?.certificates, now.certificates),
      configuration: now.configuration,
    };
    return found;
  };
}
