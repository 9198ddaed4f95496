import { expect, test } from 'vitest';
import { explained } from '../../../../src/agent/verdict/causes.ts';
import { type Begun, idOf } from '../../../../src/agent/verdict/found.ts';
import { type KindOfProblem, kindNames } from '../../../../src/agent/verdict/kinds.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

/**
 * All kinds of problems against all others: which explains which. The table follows the service: a store is needed by every role,
 * history by its callers, the roles by task lists and workflows, and a store by its backups.
 */

const kindsIn = (text: string) => text.split(' ').filter(Boolean) as KindOfProblem[];
/** What the end of a role's process looks like. */
const ofProcess = 'crash_loop role_down fatal role_failing scrape_down';
const requests = 'request_errors frontend_latency';
const ofHistory = 'shard_movement task_latency';
const slowWork = 'list_stalled backlog_growth workflow_timeouts workflow_failures canary';
const work = `list_unpolled ${slowWork}`;
const domains = 'domain failover disagreement';
const replicas = 'replication_failures replication_lag replication';
const archives = 'archival_stalled retention_unarchived';
const noBackup = 'wal_stalled backup_failed backup_missing backup_unread backup_late';
const recovery = 'recovery not_proven';
const service = `${requests} ${ofHistory} ${work} ${domains} ${replicas}`;
const persistence = 'persistence_latency persistence_errors';
const ofStore = `${noBackup} ${recovery} recovery_weak flapping stale data_at_risk ${ofProcess}`;
const ofProbe = 'certificate flapping';
/** What else of a role ends, pauses or fails with its process. */
const ofRole = `${ofProcess} ${ofProbe} stale log_silent ${persistence} gc_pause`;
const ofDeadRole = `${ofRole} ${service}`;

/** The problems that a kind explains: those that share its store, role, domain or the like, and those that need not. */
const effects: Partial<Record<KindOfProblem, readonly [related: string, anywhere: string]>> = {
  disk_full: [`store_down read_only ${ofStore}`, `${persistence} ${service} ${archives} log_silent`],
  locks: [`connections store_down ${ofProcess}`, `${persistence} ${requests} ${ofHistory}`],
  connections: ['store_down', persistence],
  store_down: [`${ofStore} ${ofProbe}`, `${persistence} ${service} ${archives} log_silent`],
  read_only: [ofProcess, `${persistence} ${service}`],
  schema: [ofProcess, persistence],
  persistence_latency: ['', `${requests} ${ofHistory}`],
  crash_loop: [`${ofDeadRole} ${archives}`, ''],
  heap: [`${ofProcess} flapping gc_pause ${ofHistory}`, ''],
  gc_pause: [`${ofProcess} flapping ${requests} ${ofHistory}`, ''],
  role_down: [`${ofDeadRole} ${archives}`, ''],
  fatal: [ofDeadRole, ''],
  role_failing: [ofDeadRole, ''],
  scrape_down: [`${ofProbe} ${requests} ${ofHistory} ${work}`, ''],
  persistence_errors: ['persistence_latency', `${requests} ${ofHistory} ${slowWork}`],
  shard_movement: ['', `task_latency ${requests} ${slowWork}`],
  task_latency: ['', slowWork],
  request_errors: ['', `frontend_latency ${slowWork}`],
  frontend_latency: ['', slowWork],
  cluster_down: [`replication_failures replication_lag ${domains} ${ofProbe}`, 'replication'],
  replication_failures: ['', 'replication_lag replication failover'],
  replication_lag: ['', 'replication failover'],
  replication: ['', 'failover'],
  disagreement: ['failover', ''],
  list_unpolled: [work, ''],
  list_stalled: [work, ''],
  backlog_growth: [work, ''],
  archive_down: [archives, ''],
  archival_stalled: ['retention_unarchived', ''],
  ...Object.fromEntries(
    kindsIn(`${noBackup} backup_gone backup_damaged backup_offsite`).map((kind) => [kind, [recovery, '']]),
  ),
  recovery: ['not_proven', ''],
  log_deleted: ['log_gone log_silent', ''],
  log_disk_full: ['log_silent', ''],
  log_gone: ['log_silent', ''],
};

const placeOf = (kind: KindOfProblem) => kindNames.indexOf(kind);
/** Earlier kinds that are consequences all the same: a page that is gone explains the roles that call its role. */
const earlier: Partial<Record<KindOfProblem, readonly KindOfProblem[]>> = {
  scrape_down: ['role_down', 'role_failing'],
};
/** The table has what can be a consequence; only a later kind is one. */
const laterThan = (kind: KindOfProblem, text: string) =>
  kindsIn(text).filter((effect) => placeOf(effect) > placeOf(kind));

/** The places of a problem: its role, and everything else in one word. */
const problem = (
  kind: KindOfProblem,
  subject: string,
  role: string,
  place: string,
  reason?: string,
): Begun => ({
  ...{
    kind,
    subject: `/${place}/${subject}`,
    sinceMs: 0,
    evidence: [],
    from: [`check/store/${place} replica`],
  },
  about: {
    ...{ store: place, role, callee: role, domain: place, tasklist: place, archive: place },
    ...{ clusters: [place], probe: `store/${place}` },
  },
  ...(reason !== undefined && { reason }),
});
/** Roles that are gone, and a standby that follows its own primary. */
const facts = statusFactsOf({
  probes: [
    probeStatusOf('health/other', { reason: 'refused' }),
    probeStatusOf('store/here', { details: { identity: '7', follows: ['7'] } as never }),
  ],
});
const explains = (cause: Begun, effect: Begun): boolean =>
  explained([cause, effect], facts).some(({ causedBy }) => causedBy === idOf(cause));

/** The roles and the reasons of a cause and of an effect in one place. */
const scenes = [
  [
    ['history', undefined],
    ['history', 'persistence'],
  ],
  [
    ['history', 'refused'],
    ['history', 'refused'],
  ],
  [
    ['history', 'tls_expired'],
    ['history', 'too_many_connections'],
  ],
  [
    ['history', 'refused'],
    ['frontend', 'not_ok'],
  ],
  [
    ['frontend', 'refused'],
    ['frontend', 'not_ok'],
  ],
  [
    ['worker', 'refused'],
    ['worker', undefined],
  ],
] as const;

test.each(kindNames)('what %s explains, in its own place and elsewhere', (kind) => {
  const [related = '', anywhere = ''] = effects[kind] ?? [];
  const others = kindNames.filter((other) => other !== kind);
  const found = others.filter((other) =>
    scenes.some(([cause, effect]) =>
      explains(
        problem(kind, 'a', cause[0], 'here', cause[1]),
        problem(other, 'b', effect[0], 'here', effect[1]),
      ),
    ),
  );
  expect(new Set(found)).toEqual(
    new Set([...laterThan(kind, `${related} ${anywhere}`), ...(earlier[kind] ?? [])]),
  );
  const apart = others.filter((other) =>
    explains(problem(kind, 'a', 'one', 'here'), problem(other, 'b', 'other', 'there', 'tls_hostname')),
  );
  expect(new Set(apart)).toEqual(new Set(laterThan(kind, anywhere)));
});
