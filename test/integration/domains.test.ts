import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { ClusterGroupOptions } from '../../src/probes/clusters/block.ts';
import { planDomains } from '../../src/probes/domains/plan.ts';
import type { Finding } from '../../src/probes/probe.ts';
import { manualClock } from '../clock.ts';
import { clusterGroup, probeOnce, probesOptions, samplesOf } from '../cluster-group.ts';
import { newFolder } from '../folder.ts';
import { until } from '../until.ts';

const folder = newFolder(afterAll);

interface Shown {
  active: string;
  version?: number;
  clusters?: string[];
  global?: boolean;
  history?: readonly [at: string, from: string, to: string][];
  name?: string;
}

/** Sets what the client prints from now on. */
function shows(
  file: string,
  { active, version, clusters = ['dc1', 'dc2', 'dc3'], global = true, history, name = 'orders' }: Shown,
) {
  const entries = history?.map(([eventTime, fromCluster, toCluster]) => ({
    eventTime,
    fromCluster,
    toCluster,
  }));
  const answer = {
    domainInfo: { name, data: entries && { FailoverHistory: JSON.stringify(entries) } },
    configuration: { workflowExecutionRetentionPeriodInDays: 7, historyArchivalStatus: 'ENABLED' },
    replicationConfiguration: {
      activeClusterName: active,
      clusters: clusters.map((clusterName) => ({ clusterName })),
    },
    failoverVersion: version,
    isGlobalDomain: global,
  };
  writeFileSync(join(folder, file), `Warning: deprecated\n${JSON.stringify(answer, null, 2)}\n`);
}

const three = clusterGroup(
  { rpcAddress: '10.0.0.1:1' },
  { rpcAddress: '10.0.0.2:2' },
  { rpcAddress: '10.0.0.3:3' },
);

/** One check of `orders` by a command that prints a file, in a new run of the agent. */
function runCheck(
  file: string,
  { group, recalled }: { group?: ClusterGroupOptions; recalled?: unknown } = {},
): Promise<Finding> {
  const describeBy = { command: ['cat', join(folder, file)], intervalMs: 60_000, timeoutMs: 10_000 };
  const domains = { watch: ['orders'], describe: describeBy };
  const [row] = planDomains(probesOptions({ domains, clusterGroupMetadata: group }));
  return probeOnce(row!, { recalled, clock: manualClock(Date.UTC(2026, 3, 1)) });
}

describe('a domain', () => {
  test('shows all that is said of it', async () => {
    shows('all', { active: 'dc2', version: 11, history: [['2026-03-02T10:15:30Z', 'dc1', 'dc2']] });
    const found = await runCheck('all', { group: three });
    expect(found.reason).toBeUndefined();
    expect(found.msg).toBe('active in dc2; it spans dc1, dc2, dc3');
    expect(samplesOf(found)).toEqual([
      'svc_domain_active_cluster{domain="orders",active_cluster="dc2"} 1',
      'svc_domain_archival_enabled{domain="orders",archive="history"} 1',
      'svc_domain_archival_enabled{domain="orders",archive="visibility"} 0',
      'svc_domain_clusters{domain="orders"} 3',
      'svc_domain_failover_version{domain="orders"} 11',
      'svc_domain_failovers_total{domain="orders"} 0',
      'svc_domain_global{domain="orders"} 1',
      'svc_domain_last_failover_timestamp_seconds{domain="orders"} 1772446530',
      'svc_domain_retention_seconds{domain="orders"} 604800',
    ]);
    expect(found.details).toMatchObject({ versionOf: 'dc2', failovers: 1 });
    // The command queries only one cluster, so it is not known whether the others agree.
    expect(found.details?.notes).toEqual([
      expect.stringMatching(
        /^svc_domain_failover_ready is absent: .* is not known.*; domains\.describe\.command asks this cluster only, put \{address\} into it to ask each cluster$/,
      ),
    ]);
  });

  test('fails over, and each failover counts once in all lives of the agent together', async () => {
    let recalled: unknown;
    const counted: number[] = [];
    const next = async (shown: Shown) => {
      shows('fails', shown);
      const found = await runCheck('fails', { group: three, recalled });
      recalled = JSON.parse(JSON.stringify(found.remember));
      counted.push(...(found.increases ?? []).map(({ value }) => value));
      return found;
    };
    const first: [string, string, string] = ['2026-03-02T10:15:30Z', 'dc1', 'dc2'];
    const second: [string, string, string] = ['2026-03-03T10:15:30Z', 'dc2', 'dc1'];
    await next({ active: 'dc2', version: 1, history: [first] });
    await next({ active: 'dc2', version: 1, history: [first] });
    const moved = await next({ active: 'dc1', version: 10, history: [second, first] });
    await next({ active: 'dc1', version: 10, history: [second, first] });
    await next({ active: 'dc3', version: 12 });
    expect(counted).toEqual([0, 0, 1, 0, 1]);
    expect(samplesOf(moved)).toContain('svc_domain_active_cluster{domain="orders",active_cluster="dc1"} 1');
    expect(samplesOf(moved).filter((line) => line.includes('active_cluster='))).toHaveLength(1);
    expect(samplesOf(moved)).toContain(
      'svc_domain_last_failover_timestamp_seconds{domain="orders"} 1772532930',
    );
  });

  test('a check that fails keeps what was known', async () => {
    shows('kept', { active: 'dc1' });
    const { remember } = await runCheck('kept');
    const failed = await runCheck('not-there', { recalled: remember });
    expect(failed.reason).toBe('command_failed');
    expect(failed.gauges).toBeUndefined();
    expect(failed.remember).toBe(remember);
    shows('kept', { active: 'dc2' });
    expect((await runCheck('kept', { recalled: failed.remember })).increases).toMatchObject([{ value: 1 }]);
  });

  test('has a version of another cluster than its name', async () => {
    shows('mismatch', { active: 'dc1', version: 12 });
    const found = await runCheck('mismatch', { group: three });
    expect(found).toMatchObject({
      reason: 'version_mismatch',
      msg: 'active in dc1, but its failover version 12 belongs to dc3',
    });
    expect(samplesOf(found)).toContain('svc_domain_failover_version{domain="orders"} 12');
    shows('mismatch', { active: 'dc1', version: 17 });
    expect((await runCheck('mismatch', { group: three })).msg).toContain(
      'belongs to no cluster of the group',
    );
    expect((await runCheck('mismatch')).reason).toBeUndefined();
  });

  test('that is local has a version that means nothing', async () => {
    shows('local', { active: 'dc1', version: 17, global: false, clusters: ['dc1'] });
    const found = await runCheck('local', { group: three });
    expect(found.reason).toBeUndefined();
    expect(found.msg).toBe('active in dc1, a local domain');
  });

  test('spans fewer clusters than suggested, and is active outside of them', async () => {
    shows('few', { active: 'dc3', version: 2, clusters: ['dc1', 'dc2'] });
    const found = await runCheck('few', { group: three });
    expect(found.reason).toBeUndefined();
    expect(found.details).toMatchObject({
      notes: [
        'spans 2 clusters; 3 or more are suggested',
        'active in dc3, which is not among its clusters',
        expect.stringContaining('svc_domain_failover_ready is absent'),
      ],
    });
  });

  test('spans one cluster of several', async () => {
    shows('one', { active: 'dc1', version: 0, clusters: ['dc1'] });
    expect((await runCheck('one', { group: three })).details).toMatchObject({
      notes: expect.arrayContaining(['spans 1 cluster; 3 or more are suggested']),
    });
  });

  test('of another name is not what was asked for', async () => {
    shows('other', { active: 'dc1', name: 'payments' });
    expect(await runCheck('other')).toMatchObject({
      reason: 'invalid_answer',
      msg: 'the output describes another domain, payments',
    });
  });

  test('in an unknown shape is shown from its beginning', async () => {
    writeFileSync(join(folder, 'unknown'), `| NAME |\tACTIVE |\n${'-'.repeat(1000)}`);
    const { reason, msg, gauges } = await runCheck('unknown');
    expect(reason).toBe('invalid_answer');
    expect(msg).toMatch(/^the output is not a description of a domain: "\| NAME \| ACTIVE \| -+…"$/);
    expect(msg.length).toBeLessThan(200);
    expect(gauges).toBeUndefined();
    writeFileSync(join(folder, 'unknown'), '');
    expect((await runCheck('unknown')).msg).toBe('the output is not a description of a domain: nothing');
  });
});

describe('a domain through each cluster', () => {
  test('is seen alike', async () => {
    for (const cluster of ['dc1', 'dc2', 'dc3']) shows(`alike-${cluster}`, { active: 'dc2', version: 1 });
    const found = await runCheck('alike-{cluster}', { group: three });
    expect(found.reason).toBeUndefined();
    expect(found.details).toMatchObject({
      views: {
        dc1: { activeCluster: 'dc2', failoverVersion: 1 },
        dc2: { activeCluster: 'dc2' },
        dc3: { activeCluster: 'dc2' },
      },
    });
  });

  test('is active in another one by another view: the numbers are those of the own cluster', async () => {
    shows('apart-10.0.0.1:1', { active: 'dc1', version: 10 });
    shows('apart-10.0.0.2:2', { active: 'dc2', version: 11 });
    shows('apart-10.0.0.3:3', { active: 'dc1', version: 10 });
    const found = await runCheck('apart-{address}', { group: three });
    expect(found).toMatchObject({
      reason: 'clusters_disagree',
      msg: 'active in dc1 according to this cluster, but dc2 says dc2',
      details: { views: { dc1: { activeCluster: 'dc1' }, dc2: { activeCluster: 'dc2' } } },
    });
    expect(samplesOf(found)).toContain('svc_domain_active_cluster{domain="orders",active_cluster="dc1"} 1');
  });

  test('fails over while it is checked: a cluster that learns of it late disagrees only if it does not by the next check', async () => {
    let recalled: unknown;
    const next = async (dc1: Shown, dc2: Shown) => {
      shows('moves-dc1', dc1);
      shows('moves-dc2', dc2);
      shows('moves-dc3', dc2);
      const found = await runCheck('moves-{cluster}', { group: three, recalled });
      recalled = JSON.parse(JSON.stringify(found.remember));
      return found;
    };
    const before = { active: 'dc1', version: 10 };
    const after = { active: 'dc2', version: 11 };
    const afterThat = { active: 'dc3', version: 12 };
    expect((await next(before, before)).reason).toBeUndefined();
    const underWay = await next(before, after);
    expect(underWay.reason).toBeUndefined();
    expect(underWay.details).toMatchObject({
      notes: expect.arrayContaining(['a failover is under way, which not every cluster knows yet']),
    });
    expect((await next(after, after)).reason).toBeUndefined();
    // The other clusters learn of the next one late, and never.
    expect((await next(afterThat, after)).reason).toBeUndefined();
    expect(await next(afterThat, after)).toMatchObject({
      reason: 'clusters_disagree',
      msg: 'active in dc3 according to this cluster, but dc2 says dc2, dc3 says dc2',
    });
    // A further failover does not hide that they disagree.
    expect((await next({ active: 'dc1', version: 20 }, after)).reason).toBe('clusters_disagree');
  });

  test('is active in two clusters with the same version: no failover is under way', async () => {
    let recalled: unknown;
    const view = (active: string, version: number) => ({ active, version });
    for (const [dc2, reason] of [
      [view('dc1', 10), undefined],
      [view('dc2', 10), 'clusters_disagree'],
    ] as const) {
      shows('split-dc1', view('dc1', 10));
      for (const name of ['split-dc2', 'split-dc3']) shows(name, dc2);
      const found = await runCheck('split-{cluster}', { group: three, recalled });
      recalled = found.remember;
      expect(found.reason).toBe(reason);
    }
  });

  test('one that cannot be asked is named, and the domain is well all the same', async () => {
    shows('gone-dc1', { active: 'dc1', version: 10 });
    shows('gone-dc3', { active: 'dc1', version: 10 });
    const found = await runCheck('gone-{cluster}', { group: three });
    expect(found.reason).toBeUndefined();
    expect(found.msg).toContain('not known through dc2: cat: exit status 1');
  });

  test('one that hangs is not waited for to the end', async () => {
    shows('hangs-dc1', { active: 'dc1', version: 10 });
    const started = join(folder, 'started');
    const script = 'if [ "$0" = dc2 ]; then : > "$2"; exec sleep 600; fi; cat "$1-$0"';
    const command = ['sh', '-c', script, '{cluster}', join(folder, 'hangs'), started];
    const domains = { watch: ['orders'], describe: { command, intervalMs: 60_000, timeoutMs: 10_000 } };
    const [row] = planDomains(probesOptions({ domains, clusterGroupMetadata: clusterGroup({}, {}) }));
    const clock = manualClock();
    const pending = probeOnce(row!, { clock, signal: new AbortController().signal });
    await until('the command runs', () => existsSync(started));
    clock.advance(8000);
    const found = await pending;
    expect(found.reason).toBeUndefined();
    expect(found.msg).toBe(
      'active in dc1; it spans dc1, dc2, dc3; not known through dc2: sh: did not end in time',
    );
    expect(clock.waiting).toBe(0);
  });

  test('only those that are enabled and have the domain are asked', async () => {
    const group = clusterGroup({}, { enabled: false }, {}, {});
    for (const cluster of ['dc2', 'dc4']) shows(`asked-${cluster}`, { active: cluster });
    for (const cluster of ['dc1', 'dc3']) shows(`asked-${cluster}`, { active: 'dc1', version: 0 });
    expect((await runCheck('asked-{cluster}', { group })).reason).toBeUndefined();
    shows('asked-dc1', { active: 'dc1', global: false, clusters: ['dc1'] });
    const local = await runCheck('asked-{cluster}', { group });
    expect(local).toMatchObject({ msg: 'active in dc1, a local domain', details: { views: undefined } });
  });

  test('the own cluster that cannot be asked leaves nothing', async () => {
    shows('own-dc2', { active: 'dc2' });
    const found = await runCheck('own-{cluster}', { group: three });
    expect(found.reason).toBe('command_failed');
    expect(found.gauges).toBeUndefined();
  });
});
