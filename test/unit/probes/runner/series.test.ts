import { describe, expect, test } from 'vitest';
import { healthFailureReasons } from '../../../../src/core/reasons.ts';
import type { Finding, ShownSeries } from '../../../../src/probes/probe.ts';
import { dueBed, runnerBed, type Script, scripted } from './bed.ts';

const roleShows: ShownSeries = {
  up: { name: 'svc_role_up', labels: {} },
  duration: { name: 'svc_role_health_check_duration_seconds', labels: {} },
  failures: { name: 'svc_role_health_failures_total', labels: {} },
  transitions: { name: 'svc_role_health_transitions_total', labels: {} },
};
const health = (script: Script = {}) =>
  scripted('health/frontend', {
    ...script,
    row: { service: 'frontend', shows: roleShows, reasons: ['too_slow', 'failed', 'not_ok'], ...script.row },
  });

const of = (service: string) => `svc_service="${service}"`;
const skipped = {
  'svc_probe_skipped_total{probe="health/frontend",reason="overlap"}': 0,
  'svc_probe_skipped_total{probe="health/frontend",reason="backlog"}': 0,
};
const counters = (told: {
  tooSlow?: number;
  failed?: number;
  notOk?: number;
  up?: number;
  down?: number;
}) => ({
  [`svc_role_health_failures_total{reason="too_slow",${of('frontend')}}`]: told.tooSlow ?? 0,
  [`svc_role_health_failures_total{reason="failed",${of('frontend')}}`]: told.failed ?? 0,
  [`svc_role_health_failures_total{reason="not_ok",${of('frontend')}}`]: told.notOk ?? 0,
  'svc_probe_failures_total{probe="health/frontend",reason="too_slow"}': told.tooSlow ?? 0,
  'svc_probe_failures_total{probe="health/frontend",reason="failed"}': told.failed ?? 0,
  'svc_probe_failures_total{probe="health/frontend",reason="not_ok"}': told.notOk ?? 0,
  [`svc_role_health_transitions_total{${of('frontend')},to="up"}`]: told.up ?? 0,
  [`svc_role_health_transitions_total{${of('frontend')},to="down"}`]: told.down ?? 0,
});
const gauges = (up: number, durationSeconds: number, atMs: number) => ({
  [`svc_role_up{${of('frontend')}}`]: up,
  [`svc_role_health_check_duration_seconds{${of('frontend')}}`]: durationSeconds,
  'svc_probe_last_run_timestamp_seconds{probe="health/frontend"}': atMs / 1e3,
});

describe('series of a probe', () => {
  test('counters are there at 0 before the first check, gauges are not', () => {
    const bed = runnerBed();
    bed.configure(health());
    expect(bed.series()).toEqual({ ...skipped, ...counters({}) });
  });

  test('each check shows raw health, its duration in seconds, its moment, and counts', async () => {
    const probe = health({ failureThreshold: 2 });
    const bed = await dueBed(probe);
    await bed.pass(250);
    await probe.lastCheck.finds();
    expect(bed.series()).toEqual({ ...skipped, ...counters({}), ...gauges(1, 0.25, bed.clock.nowMs()) });

    await bed.due(probe);
    await probe.lastCheck.finds({ reason: 'not_ok', msg: 'no' });
    const afterOne = { ...skipped, ...counters({ notOk: 1 }), ...gauges(0, 0, bed.clock.nowMs()) };
    expect(bed.series()).toEqual(afterOne);

    await bed.due(probe);
    await probe.lastCheck.throws(new Error('broken'));
    const afterTwo = { ...skipped, ...counters({ notOk: 1, failed: 1, down: 1 }) };
    expect(bed.series()).toEqual({ ...afterTwo, ...gauges(0, 0, bed.clock.nowMs()) });

    await bed.due(probe);
    await probe.lastCheck.finds();
    const afterThree = { ...skipped, ...counters({ notOk: 1, failed: 1, down: 1, up: 1 }) };
    expect(bed.series()).toEqual({ ...afterThree, ...gauges(1, 0, bed.clock.nowMs()) });
  });

  test('a reason that the row does not name is counted all the same', async () => {
    const probe = health();
    const bed = await dueBed(probe);
    await probe.lastCheck.finds({ reason: 'refused', msg: 'refused' });
    expect(bed.series()).toHaveProperty(
      [`svc_role_health_failures_total{reason="refused",${of('frontend')}}`],
      1,
    );
    expect(bed.series()).toHaveProperty(
      ['svc_probe_failures_total{probe="health/frontend",reason="refused"}'],
      1,
    );
  });

  test('every reason of a closed list is there', () => {
    const bed = runnerBed();
    bed.configure(health({ row: { reasons: healthFailureReasons } }));
    expect(Object.keys(bed.series('svc_role_health_failures_total'))).toHaveLength(
      healthFailureReasons.length,
    );
  });

  test('an event of a finding gets one line in the log, when the finding is taken', async () => {
    const bed = runnerBed();
    const probe = scripted('domain/orders', { row: { kind: 'domain' } });
    bed.configure(probe);
    const fields = { domain: 'orders', from: 'dc1', to: 'dc2', failovers: 1 };
    await bed.due(probe);
    await probe.lastCheck.finds({
      msg: 'ok',
      events: [{ level: 'info', msg: 'a domain failed over', fields }],
    });
    await bed.due(probe);
    await probe.lastCheck.finds({ msg: 'ok' });
    expect(bed.entries.filter(({ msg }) => msg === 'a domain failed over')).toEqual([
      expect.objectContaining({ level: 'info', fields }),
    ]);
  });

  test('a probe reads the last finding of another one', async () => {
    const bed = runnerBed();
    const refused = async () => ({ reason: 'refused' as const, msg: 'refused' });
    const peer = scripted('cluster/dc2', { row: { kind: 'cluster' }, answers: refused });
    const reader = scripted('domain/orders', {
      row: { kind: 'domain' },
      answers: async () => ({ msg: 'ok' }),
    });
    const { open } = reader.row;
    let latest: ((name: string) => Finding | undefined) | undefined;
    reader.row = {
      ...reader.row,
      open(deps) {
        latest = deps.latest;
        return open(deps);
      },
    };
    bed.configure(peer, reader);
    await bed.due(reader);
    await bed.due(peer);
    expect(latest?.('cluster/dc2')).toMatchObject({ reason: 'refused' });
    expect(latest?.('cluster/nobody')).toBeUndefined();
  });

  test('a failure counts by probe and reason also where the probe has no failure counter of its own', async () => {
    const bed = runnerBed();
    const probe = scripted('domain/orders', { row: { kind: 'domain', reasons: ['clusters_disagree'] } });
    bed.configure(probe);
    const name = 'svc_probe_failures_total{probe="domain/orders",reason="clusters_disagree"}';
    expect(bed.series('svc_probe_failures_total')).toEqual({ [name]: 0 });
    await bed.due(probe);
    await probe.lastCheck.finds({ reason: 'clusters_disagree', msg: 'dc2 says dc3' });
    expect(bed.series('svc_probe_failures_total')).toEqual({ [name]: 1 });
  });

  test('gauges of a finding are set; those that the next check does not set are gone', async () => {
    const bed = runnerBed();
    const probe = scripted('domain/orders', { row: { kind: 'domain' } });
    const active = (cluster: string) => ({
      name: 'svc_domain_active_cluster' as const,
      labels: { domain: 'orders', active_cluster: cluster },
      value: 1,
    });
    const clusters = { name: 'svc_domain_clusters' as const, labels: { domain: 'orders' }, value: 2 };
    bed.configure(probe);
    await bed.due(probe);
    await probe.lastCheck.finds({ gauges: [active('dc1'), clusters], tlsNotAfterMs: 1_800_000_000_000 });
    expect(bed.series('svc_domain')).toEqual({
      'svc_domain_active_cluster{active_cluster="dc1",domain="orders"}': 1,
      'svc_domain_clusters{domain="orders"}': 2,
    });
    const tls = 'svc_probe_tls_not_after_timestamp_seconds{probe="domain/orders"}';
    expect(bed.series('svc_probe_tls')).toEqual({ [tls]: 1_800_000_000 });

    await bed.due(probe);
    await probe.lastCheck.finds({ gauges: [active('dc2')] });
    expect(bed.series('svc_domain')).toEqual({
      'svc_domain_active_cluster{active_cluster="dc2",domain="orders"}': 1,
    });
    expect(bed.series('svc_probe_tls')).toEqual({});
  });

  test('increases add up; totals are shown as somebody else keeps them, falls included', async () => {
    const bed = runnerBed();
    const labels = { source_cluster: 'dc1', target_cluster: 'dc2' };
    const tasks = { name: 'svc_replication_task_failures_total' as const, labels };
    const wal = {
      name: 'svc_store_wal_archive_failures_total' as const,
      labels: { store: 'main', kind: 'postgres', database: 'persistence' },
    };
    const probe = scripted('store/main/persistence', {
      row: { kind: 'store', shows: { counters: [tasks] } },
    });
    bed.configure(probe);
    const shown = () => [...Object.values(bed.series('svc_repl')), ...Object.values(bed.series('svc_store'))];
    expect(shown()).toEqual([0]);
    for (const [increase, total, expected] of [
      [2, 40, [2, 40]],
      [0, 41, [2, 41]],
      [3, 5, [5, 5]],
    ] as const) {
      await bed.due(probe);
      await probe.lastCheck.finds({
        increases: [{ ...tasks, value: increase }],
        totals: [{ ...wal, value: total }],
      });
      expect(shown()).toEqual(expected);
    }
  });

  test('two probes may share a series; it goes with the last of them', async () => {
    const bed = runnerBed();
    const answers = async () => ({
      msg: 'ok',
      gauges: [{ name: 'svc_clusters', labels: {}, value: 3 } as const],
    });
    const [a, b] = [scripted('cluster/a', { answers }), scripted('cluster/b', { answers })];
    bed.configure(a, b);
    await bed.pass(10_000);
    expect(bed.heard).toHaveLength(2);
    expect(bed.series('svc_clusters')).toEqual({ svc_clusters: 3 });
    bed.configure(b);
    expect(bed.series('svc_clusters')).toEqual({ svc_clusters: 3 });
    bed.configure();
    expect(bed.series()).toEqual({});
  });
});

describe('a probe without results', () => {
  test('after three intervals its gauges vanish, its counters stay; the next result brings them back', async () => {
    const probe = health({ intervalMs: 60_000, row: { lane: 'one' } });
    const hog = scripted('store/hog', { row: { lane: 'one' } });
    const bed = await dueBed(probe);
    await probe.lastCheck.finds({ tlsNotAfterMs: 1_800_000_000_000, gauges: [] });
    const lastMs = bed.clock.nowMs();
    bed.configure(probe, hog);
    await bed.due(hog);
    const gaugesShown = () =>
      Object.keys(bed.series()).filter((key) => key.includes('frontend') && !key.includes('_total'));
    await bed.pass(lastMs + 180_000 - 1 - bed.clock.nowMs(), 10_000);
    expect(gaugesShown()).toHaveLength(4);
    expect(probe.checks).toHaveLength(1);
    await bed.pass(1);
    expect(gaugesShown()).toEqual([]);
    expect(bed.series()).toMatchObject(counters({}));
    expect(bed.report(probe).skipped.backlog).toBeGreaterThan(0);

    await hog.lastCheck.finds();
    expect(probe.checks).toHaveLength(2);
    await probe.lastCheck.finds({ tlsNotAfterMs: 1_800_000_000_000 });
    expect(gaugesShown()).toHaveLength(4);
    expect(bed.series()).toMatchObject(gauges(1, 0, bed.clock.nowMs()));
  });

  test('a result in time starts the three intervals anew', async () => {
    const bed = runnerBed();
    const probe = health({ answers: async () => ({ msg: 'ok' }) });
    bed.configure(probe);
    await bed.pass(10_000);
    for (let i = 0; i < 8; i++) {
      await bed.pass(60_000);
      expect(bed.series('svc_role_up')).toEqual({ [`svc_role_up{${of('frontend')}}`]: 1 });
    }
  });
});
