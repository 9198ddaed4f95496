import type { RoleName, WorldState } from './world.ts';

/** A symptom of a fault. If another fault shows only symptoms that this one shows, too, it cannot be seen behind it. */
type Symptom =
  | 'health'
  | 'persistence'
  | 'requests'
  | 'latency'
  | 'work'
  | 'canary'
  | 'shards'
  | 'domain'
  | 'replication'
  | 'archive'
  | 'recovery'
  | 'connections'
  | 'checks';

/** Some of the values in an object and in the objects in it. */
type Settings<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { [K in keyof T]?: Settings<T[K]> }
    : T;

/** A type of incident: the fault, and how a reader would name it. */
export interface IncidentType {
  name: string;
  /** What the fault changes in the state of the world. */
  sets: Settings<WorldState>;
  /** Matches the first sentence, which must contain it. */
  says: RegExp;
  /** What the fault breaks by the rules of the world. */
  breaks: readonly Symptom[];
  /** The only symptom of the fault; missing if it shows something of its own. */
  shows?: Symptom;
  /** The place of the fault: two faults cannot be in one place. */
  place?: string;
  /** The place that counts the fault: while that is gone, nobody knows whether the fault lasts. */
  witness?: string;
  /**
   * For how many minutes after its end counters still show the fault: the longest window of its alert, or a pause between
   * crashes.
   */
  fadesMinutes?: number;
}

function setIn<T extends object>(target: T, values: Settings<T>): void {
  for (const [key, value] of Object.entries(values)) {
    const at = target[key as keyof T];
    if (typeof at === 'object' && at !== null && !Array.isArray(value))
      setIn(at, value as Settings<typeof at>);
    else Object.assign(target, { [key]: value });
  }
}
/** Lets a fault begin. */
export const inject = ({ sets }: IncidentType, state: WorldState): void => setIn(state, sets);

/** Databases of one failing store are one store in the sentence. */
const ofStores = (what: string) => what.replace(/store main\/persistence/, 'store main');
/** Whether a clause names an incident. */
export const isNamedIn = ({ says }: IncidentType, what: string): boolean => says.test(ofStores(what));
/** Whether a clause is about an incident: it says so, or it is about the role with the fault. */
export const isAbout = (type: IncidentType, what: string): boolean =>
  isNamedIn(type, what) || (type.place !== undefined && what.startsWith(`role ${type.place} `));

/** Whether the other fault also breaks everything that the first one shows. */
export const isBehind = ({ shows }: IncidentType, other: IncidentType): boolean =>
  shows !== undefined && other.breaks.includes(shows);

const everything: readonly Symptom[] = [
  ...(['health', 'persistence', 'requests', 'latency', 'work', 'canary', 'shards'] as const),
  ...(['domain', 'archive'] as const),
];

const ofStore = (name: string, reason: string, msg: string, says: RegExp): IncidentType => ({
  name,
  sets: { store: { failure: [reason, msg, 'connect'] } },
  says,
  breaks: [...everything, 'recovery', 'connections', 'checks', 'replication'],
  place: 'store',
});

const killed = (role: RoleName, breaks: readonly Symptom[]): IncidentType => ({
  name: `${role} is killed`,
  sets: { roles: { [role]: { gone: true } } },
  says: new RegExp(`roles? [\\w, ]*${role}[\\w, ]* (?:is|are) down`, 'i'),
  breaks,
  shows: 'health',
  place: role,
});

const crashing = (role: RoleName, msg: string, breaks: readonly Symptom[]): IncidentType => ({
  name: `${role} crashes: ${msg}`,
  sets: { roles: { [role]: { crashesWith: msg } } },
  says: new RegExp(`roles? [\\w, ]*${role}[\\w, ]* crash(?:es)? again and again`, 'i'),
  breaks,
  place: role,
  // The last log entry stays in the window of fatal entries.
  fadesMinutes: 10,
});

const unhealthy = (
  role: RoleName,
  reason: string,
  msg: string,
  breaks: readonly Symptom[],
  says: RegExp,
): IncidentType => ({
  name: `${role}: ${reason}`,
  sets: { roles: { [role]: { health: [reason, msg] } } },
  says,
  breaks,
  shows: 'health',
  place: role,
});

const calls: readonly Symptom[] = ['requests', 'latency', 'work', 'canary', 'archive'];
const frontendCalls: readonly Symptom[] = [...calls, 'domain', 'replication'];
const historyCalls: readonly Symptom[] = [...frontendCalls, 'shards'];

const simple = (
  name: string,
  says: RegExp,
  sets: Settings<WorldState>,
  more: Partial<IncidentType> = {},
): IncidentType => ({
  name,
  says,
  sets,
  breaks: [],
  ...more,
});

export const incidentTypes: readonly IncidentType[] = [
  ofStore(
    'store refuses',
    'refused',
    'connect ECONNREFUSED 127.0.0.1:5432',
    /store main refuses connections/i,
  ),
  ofStore('store is silent', 'connect_timeout', 'no answer within 5 s', /store main does not answer/i),
  ofStore(
    'password changed',
    'credentials',
    'password authentication failed',
    /store main refuses the credentials/i,
  ),
  ofStore(
    'certificate of the store ended',
    'tls_expired',
    'certificate has expired',
    /store main has an expired certificate/i,
  ),
  ofStore(
    'store is shutting down',
    'shutting_down',
    'the database system is shutting down',
    /store main is shutting down/i,
  ),
  ofStore(
    'disk full',
    'query_failed',
    'could not extend file: No space left on device',
    /disk of store main is full/i,
  ),
  simple(
    'connections run out',
    /store main is short of connections/i,
    { store: { checks: { connections: '98 of 100 connections are open' } } },
    { shows: 'connections', breaks: ['persistence'] },
  ),
  simple(
    'a backup locks the store',
    /store main keeps sessions waiting/i,
    {
      store: {
        checks: { lock_waits: '14 sessions wait for a lock of session 4711 of backup, active, for 95 s' },
        slow: true,
      },
    },
    {
      // Sessions that wait keep their connections.
      breaks: ['persistence', 'latency', 'requests', 'work', 'canary', 'shards', 'connections'],
      shows: 'checks',
      fadesMinutes: 2,
    },
  ),
  simple(
    'store is read only',
    /store main refuses writes/i,
    { store: { readOnly: true } },
    {
      breaks: [
        ...(['persistence', 'work', 'canary', 'shards', 'requests', 'latency'] as const),
        ...(['domain', 'replication', 'archive'] as const),
      ],
      shows: 'checks',
    },
  ),
  simple(
    'a schema that is too old',
    /database main\/persistence has the wrong schema/i,
    { store: { checks: { schema: 'version 0.30, expected 0.37 or newer' } } },
    { shows: 'checks', breaks: ['persistence'] },
  ),
  simple(
    'store is slow',
    /store calls of roles? .* are slow/i,
    { store: { slow: true } },
    { breaks: ['latency', 'requests', 'work', 'canary', 'shards'], shows: 'persistence', fadesMinutes: 2 },
  ),
  killed('frontend', frontendCalls),
  killed('history', historyCalls),
  killed('matching', frontendCalls),
  killed('worker', ['archive', 'replication']),
  unhealthy(
    'history',
    'first_byte_timeout',
    'no answer within 5 s',
    historyCalls,
    /roles? [\w, ]*history[\w, ]* (?:is|are) down/i,
  ),
  unhealthy(
    'matching',
    'not_in_ring',
    'not a member of the ring',
    frontendCalls,
    /roles? [\w, ]*matching[\w, ]* (?:is|are) down/i,
  ),
  unhealthy(
    'worker',
    'tls_expired',
    'certificate has expired',
    ['replication'],
    /role worker has an expired certificate/i,
  ),
  crashing('history', 'bootstrap ringpop: join duration exceeded 30 s', historyCalls),
  crashing('frontend', 'invalid configuration: unknown key', frontendCalls),
  crashing('worker', 'out of memory', ['archive', 'replication']),
  simple(
    'a large heap',
    /role matching has a large heap/i,
    { roles: { matching: { heap: 9e9 } } },
    { place: 'matching' },
  ),
  simple(
    'long pauses',
    /role history pauses for garbage collection/i,
    { roles: { history: { pauses: 300 } } },
    { place: 'history', breaks: ['requests', 'latency', 'work', 'canary', 'shards'], fadesMinutes: 5 },
  ),
  simple(
    'the port of the page is closed',
    /role worker cannot be scraped/i,
    { roles: { worker: { pageClosed: true } } },
    { shows: 'health', place: 'worker' },
  ),
  simple(
    'history alone cannot reach the store',
    /role history has persistence errors/i,
    { roles: { history: { ownErrors: 15 } } },
    {
      shows: 'persistence',
      breaks: ['requests', 'latency', 'work', 'canary', 'shards'],
      place: 'history',
      fadesMinutes: 2,
    },
  ),
  simple(
    'matching fails requests',
    /requests from .*to matching.* fail/i,
    { failingRequests: { matching: 0.4 } },
    { shows: 'requests', breaks: ['latency', 'work', 'canary'], fadesMinutes: 2 },
  ),
  simple(
    'the frontend is slow',
    /the frontend answers slowly/i,
    { frontendSlow: true },
    { shows: 'latency', breaks: ['work', 'canary'], witness: 'frontend', fadesMinutes: 2 },
  ),
  simple(
    'no worker polls',
    /task list orders\/default has tasks but no poller/i,
    { workers: 'gone' },
    { shows: 'work', breaks: ['work', 'archive'], place: 'workers', witness: 'matching' },
  ),
  simple(
    'workers get no task',
    /task list orders\/default is stalled/i,
    { workers: 'stuck' },
    { shows: 'work', breaks: ['work', 'archive'], place: 'workers' },
  ),
  simple(
    'more work than workers',
    /backlog of task list orders\/default grows/i,
    { backlogGrowth: 200 },
    { shows: 'work', breaks: ['work', 'archive'], place: 'workers', witness: 'matching', fadesMinutes: 5 },
  ),
  simple(
    'workflows time out',
    /workflows of domain orders time out/i,
    { timeouts: 9 },
    { shows: 'work', witness: 'history', fadesMinutes: 5 },
  ),
  simple(
    'the other cluster is lost',
    /cluster dc2 is unreachable/i,
    { cluster: ['unreachable', 'no route to host'] },
    { breaks: ['replication', 'domain'], place: 'dc2' },
  ),
  simple(
    'replication lags',
    /replication dc1 to dc2 lags behind/i,
    { replicationLagSeconds: 900 },
    { shows: 'replication', breaks: ['domain'], witness: 'dc2' },
  ),
  simple(
    'replication tasks fail',
    /replication dc1 to dc2 has failing tasks/i,
    { replicationFailures: 40 },
    { shows: 'replication', breaks: ['replication'], fadesMinutes: 2 },
  ),
  simple(
    'clusters disagree',
    /domain orders differs between clusters/i,
    { domain: ['clusters_disagree', 'dc1 says dc1, dc2 says dc2'] },
    { shows: 'domain', place: 'domain' },
  ),
  simple(
    'the client cannot describe the domain',
    /domain orders cannot be read/i,
    { domain: ['command_missing', 'no such file: cadence'] },
    { shows: 'domain', place: 'domain' },
  ),
  simple(
    'the bucket is gone',
    /archive history cannot be used/i,
    { archive: ['not_found', 'no such bucket'] },
    { breaks: ['archive'] },
  ),
  simple(
    'nothing is archived',
    /archive history receives nothing/i,
    { archiveAgeSeconds: 200_000 },
    { shows: 'archive', place: 'archive' },
  ),
  simple(
    'nothing has been archived for longer than workflows are kept',
    /archive history receives nothing/i,
    { archiveAgeSeconds: 700_000 },
    { shows: 'archive', place: 'archive' },
  ),
  simple(
    'workflows fail',
    /workflows of domain orders fail/i,
    { failures: 9 },
    { shows: 'work', witness: 'history', fadesMinutes: 5 },
  ),
  simple(
    'the canary is gone',
    /the canary in domain canary completes no workflow/i,
    { canaryGone: true },
    { shows: 'canary' },
  ),
  simple(
    'shards move',
    /shards of role history keep moving/i,
    { shardsMove: 2 },
    {
      shows: 'shards',
      breaks: ['shards', 'requests', 'latency', 'work', 'canary'],
      place: 'shards',
      witness: 'history',
      fadesMinutes: 5,
    },
  ),
  simple(
    'transfer tasks are late',
    /task queue transfer of history is late/i,
    { tasksLate: true },
    { shows: 'shards', breaks: ['work', 'canary'], witness: 'history', fadesMinutes: 5 },
  ),
  simple(
    'a backup failed',
    /backup nightly failed/i,
    { backups: { nightly: ['backup_failed', 'exit status 1'] } },
    { shows: 'recovery', place: 'nightly' },
  ),
  simple(
    'a backup is late',
    /backup nightly is late/i,
    { backups: { nightly: ['late', 'due two hours ago'] } },
    { shows: 'recovery', place: 'nightly' },
  ),
  simple(
    'the log is not archived',
    /store main does not archive its log/i,
    { walStalled: true },
    { shows: 'recovery' },
  ),
  simple('a certificate ends soon', /certificate of health\/frontend expires soon/i, { certificateDays: 3 }),
  simple(
    'a log cannot be read',
    /log file \/var\/log\/history.log is not read/i,
    { logState: 'permission denied' },
    { place: 'log' },
  ),
  simple(
    'a log is read late',
    /log file \/var\/log\/history.log is read late/i,
    { lagBytes: 200 << 20 },
    { place: 'log' },
  ),
  simple('log lines are lost', /log lines of role history were lost/i, { lost: 500 }),
  simple('the platform refuses', /reporter metrics.hostedmetrics cannot deliver/i, { reporterFails: true }),
  simple('the disk of the agent is full', /the state cannot be written/i, { stateDegraded: 'ENOSPC' }),
  simple('a bad configuration', /the new configuration was refused/i, { reloadError: 'roles: unknown role' }),
  simple('datagrams are dropped', /data of statsd is dropped/i, { drops: 50 }),
  simple(
    'a fatal entry',
    /role matching logged fatal errors/i,
    { fatal: { role: 'matching', msg: 'panic: index out of range' } },
    {
      shows: 'health',
      breaks: ['requests', 'latency', 'work', 'canary'],
      place: 'matching',
      fadesMinutes: 10,
    },
  ),
];
