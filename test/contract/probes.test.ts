import type { Socket } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { agentMetric } from '../../src/core/agent-metrics.ts';
import { systemClock } from '../../src/core/clock.ts';
import type { Log } from '../../src/core/ports.ts';
import { closedLists } from '../../src/core/reasons.ts';
import type { BackupOptions } from '../../src/probes/backups/block.ts';
import type { ProbesOptions } from '../../src/probes/plan.ts';
import { planProbes } from '../../src/probes/plan.ts';
import type { Finding, ProbeDeps, ProbeRow, SeriesName } from '../../src/probes/probe.ts';
import { freePort } from '../ports.ts';
import { servingBare } from '../serving.ts';

// What every row of the table of probes guarantees, whatever it checks.

const secret = 'not-to-be-seen-3';
// Credentials of object stores come only from the environment of the process here.
Object.assign(process.env, { HOME: '/nowhere', AWS_EC2_METADATA_DISABLED: 'true' });
const silent: Log = { write() {}, named: () => silent };
const deps: ProbeDeps = {
  async readSecret(of) {
    if (typeof of === 'string') return of;
    throw new Error('not set');
  },
  readings: { values: () => [] },
  clock: systemClock,
  log: silent,
};

/** A backup of the first store. */
const backup = (name: string, source: BackupOptions['source']): BackupOptions => ({
  ...{ name, store: 'postgres', database: 'persistence', type: 'full', source, intervalMs: 60_000 },
  schedule: { everyMs: 864e5, usualGraceMs: 36e5 },
  objectives: { rpoMs: 864e5, rtoMs: 144e5 },
  retention: { keepMs: 2592e6, minCount: 1 },
  integrity: { level: 'full', minBytes: 1, maxShrink: 0.5, bytesPerSecond: 1e9, everyMs: 7 * 864e5 },
});

/** Every kind of probe in every form, at an address on which nobody listens. */
function everything(address: string): ProbesOptions {
  const times = { intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3, successThreshold: 1 };
  const health = ['http', 'https', 'grpc', 'grpcs', 'tcp'].map((scheme) => ({
    name: scheme,
    selected: true,
    health: { url: `${scheme}://${address}/`, ...times, auth: { bearer: secret } },
  }));
  const stores = (['postgres', 'mysql', 'widecolumn'] as const).map((kind) => ({
    name: kind,
    kind,
    address,
    user: 'mon',
    password: secret,
    credentials: 'own' as const,
    databases: { persistence: 'svc', visibility: 'svc_visibility' },
    schema: { persistence: '0.8' },
    accept: {},
    ...times,
  }));
  const cluster = (name: string, rpcTransport: string, initialFailoverVersion: number) => ({
    ...{ name, enabled: true, initialFailoverVersion, rpcName: 'svc-frontend' },
    ...{ rpcAddress: address, rpcTransport },
  });
  const archive = (kind: string) => ({ status: 'enabled' as const, enableRead: true, providers: [{ kind }] });
  return {
    services: [...health, { ...health[0]!, name: 'not-watched', selected: false }],
    stores: [...stores, { ...stores[0]!, name: 'bare', databases: {} }],
    clusterGroupMetadata: {
      failoverVersionIncrement: 10,
      primaryClusterName: 'dc1',
      currentClusterName: 'dc1',
      clusters: [cluster('dc1', 'grpc', 1), cluster('dc2', 'grpc', 2), cluster('dc3', 'tchannel', 3)],
    },
    domains: {
      watch: ['orders'],
      describe: { command: ['no-such-program-at-all', '{domain}'], intervalMs: 60_000, timeoutMs: 10_000 },
    },
    backups: [
      backup('nightly', { kind: 'files', directory: '/no/such/directory', pattern: '.', settleMs: 0 }),
      backup('pinged', { kind: 'heartbeat', token: secret }),
    ],
    stateDirectory: '/no/such/state',
    recovery: {
      rehearsal: { everyMs: 864e5, directory: '/no/such/directory', maxBytes: 1e9, timeoutMs: 1000 },
    },
    archival: { history: archive('filestore'), visibility: archive('objectstore') },
    domainDefaults: {
      archival: {
        history: { status: 'enabled', uri: 'file:///no/such/directory/at/all/' },
        visibility: { status: 'enabled', uri: 's3://bucket/path/' },
      },
    },
  };
}

const placeholder = '127.0.0.1:1';
const rows = planProbes(everything(placeholder));
/**
 * Checks that labels are those that the contract's table gives to the metric; global labels and `svc_service` are added later.
 */
function expectFits({ name, labels }: SeriesName, own: readonly string[] = []): void {
  const tags = agentMetric(name).tags.filter((tag) => tag !== 'svc_service');
  expect([...Object.keys(labels), ...own].sort(), name).toEqual([...tags].sort());
}

async function runCheck(row: ProbeRow, signal: AbortSignal): Promise<Finding> {
  const probe = await row.open(deps);
  try {
    return await probe.check(signal, undefined);
  } finally {
    await probe.close?.();
  }
}

describe.each(rows.map((row) => [row.name, row] as const))('%s', (_, row) => {
  let finding: Finding;
  beforeAll(async () => {
    const there = planProbes(everything(`127.0.0.1:${await freePort()}`)).find(
      ({ name }) => name === row.name,
    )!;
    finding = await runCheck(there, AbortSignal.timeout(30_000));
  });

  test('its name says its kind, and neither key nor target holds a secret', () => {
    expect(row.name.split('/')[0]).toBe(row.kind);
    expect(closedLists['probe.kind']).toContain(row.kind);
    expect(row.target).not.toContain(secret);
    expect(row.schedule.timeoutMs).toBeLessThanOrEqual(row.schedule.intervalMs);
  });

  test('what it shows is in the contract, with its labels', () => {
    const { up, duration, failures, transitions, counters = [] } = row.shows;
    for (const series of [up, duration, ...counters]) if (series) expectFits(series);
    if (failures) expectFits(failures, ['reason']);
    for (const reason of row.reasons)
      expect(closedLists['svc_probe_failures_total.reason']).toContain(reason);
    expect(row.reasons).toContain('too_slow');
    if (transitions) expectFits(transitions, ['to']);
  });

  test('where nobody is, its finding says so from its closed list, for people, without a secret', () => {
    expect(finding.msg).not.toBe('');
    if (finding.reason) expect(row.reasons).toContain(finding.reason);
    const { gauges = [], increases = [], totals = [] } = finding;
    for (const sample of [...gauges, ...increases, ...totals]) {
      expectFits(sample);
      expect(Number.isFinite(sample.value)).toBe(true);
    }
    expect(JSON.stringify(finding)).not.toContain(secret);
  });

  test('what it remembers survives as JSON', () => {
    const { remember = null } = finding;
    expect(JSON.parse(JSON.stringify(remember))).toEqual(remember);
  });

  test('a signal that is already aborted: it settles, no success is invented, and nothing stays open', async () => {
    const probe = await row.open(deps);
    const settled = await settledSoon(probe.check(AbortSignal.abort(new Error('over')), undefined));
    await probe.close?.();
    const succeeded = settled.status === 'fulfilled' && settled.value.reason === undefined;
    // A probe that needs nothing from outside may still succeed.
    expect(succeeded && !isLocal(row)).toBe(false);
  });
});

/** Whether a row reads only from the agent, or from files of this machine. */
const isLocal = ({ kind, name }: ProbeRow): boolean =>
  ['replication', 'backup', 'recovery', 'rehearsal'].includes(kind) ||
  ['cluster/dc1', 'archive/history'].includes(name);

/** Returns how a promise settled. Fails if it hangs. */
async function settledSoon<T>(work: Promise<T>): Promise<PromiseSettledResult<T>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('still under way')), 60_000);
  });
  try {
    const [settled] = await Promise.race([Promise.allSettled([work]), late]);
    return settled!;
  } finally {
    clearTimeout(timer);
  }
}

/** A server that accepts connections and never sends anything. */
async function openSilence() {
  const open = new Set<Socket>();
  let met: () => void = () => {};
  const connected = new Promise<void>((resolve) => {
    met = resolve;
  });
  const port = await servingBare((socket) => {
    open.add(socket);
    socket.on('data', () => {});
    socket.on('close', () => open.delete(socket));
    met();
  });
  return {
    address: `127.0.0.1:${port}`,
    open,
    connected,
  };
}

/** The same probes, at an address on which somebody listens, and with a command that never ends. */
function hanging(address: string): ProbeRow[] {
  const options = everything(address);
  const provider = { kind: 'objectstore', endpoint: `http://${address}` };
  return planProbes({
    ...options,
    domains: {
      watch: ['orders'],
      describe: { ...options.domains!.describe!, command: ['sleep', '60', '{domain}'] },
    },
    archival: { visibility: { status: 'enabled', enableRead: true, providers: [provider] } },
  }).filter((row) => !isLocal(row));
}

describe('a signal that aborts while the other side is silent', () => {
  test.each(hanging(placeholder).map(({ name }) => name))(
    '%s gives up at once and leaves nothing open',
    async (name) => {
      const silence = await openSilence();
      const row = hanging(silence.address).find((one) => one.name === name)!;
      const probe = await row.open(deps);
      const stop = new AbortController();
      const checking = probe.check(stop.signal, undefined);
      // A command has no connection; it has started after a turn of the event loop.
      await (row.kind === 'domain'
        ? new Promise((resolve) => void setImmediate(resolve))
        : silence.connected);
      stop.abort(new Error('over'));
      const settled = await settledSoon(checking);
      await probe.close?.();
      if (
        settled.status === 'fulfilled' &&
        !row.name.startsWith('health/tcp') &&
        row.name !== 'cluster/dc3'
      ) {
        expect(settled.value.reason).toBeDefined();
        expect(row.reasons).toContain(settled.value.reason);
      }
      await expect.poll(() => silence.open.size, { timeout: 10_000 }).toBe(0);
    },
  );
});

test('names are unique, and every kind is there', () => {
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
  expect([...new Set(rows.map(({ kind }) => kind))].sort()).toEqual([...closedLists['probe.kind']].sort());
});

test('a service that is not selected is not looked at', () => {
  expect(rows.map(({ name }) => name)).not.toContain('health/not-watched');
});

test('whatever changes what a row depends on changes its key, and nothing else does', () => {
  const keys = (options: ProbesOptions) => new Map(planProbes(options).map(({ name, key }) => [name, key]));
  const before = keys(everything(placeholder));
  expect(keys(structuredClone(everything(placeholder)))).toEqual(before);
  const moved = keys(everything('127.0.0.1:2'));
  const same = [...before].filter(([name, key]) => moved.get(name) === key).map(([name]) => name);
  // These rows do not depend on the address that changed; a domain depends on the whole group.
  expect(same.sort()).toEqual([
    'archive/history',
    'archive/visibility',
    'backup/nightly',
    'backup/pinged',
    'recovery/postgres/persistence',
  ]);
});
