import { describe, expect, test } from 'vitest';
import type { ProbeRow } from '../../../../src/probes/probe.ts';
import { dueBed, renewIntakes, runnerBed, type Script, scripted } from './bed.ts';

const shows: ProbeRow['shows'] = {
  up: { name: 'svc_role_up', labels: {} },
  failures: { name: 'svc_role_health_failures_total', labels: {} },
};
const health = (script: Script = {}) =>
  scripted('health/frontend', {
    ...script,
    row: { service: 'frontend', shows, reasons: ['not_ok', 'too_slow'], ...script.row },
  });
const up = (more = '') => `svc_role_up{${more}svc_service="frontend"}`;
const notOk = (more = '') => `svc_role_health_failures_total{${more}reason="not_ok",svc_service="frontend"}`;

describe('a reload of a probe with the same key', () => {
  test('leaves its phase, state, history, counters and gauges as they are', async () => {
    const probe = health();
    const bed = await dueBed(probe);
    await probe.lastCheck.finds({ reason: 'not_ok', msg: 'no' });
    const [before, series] = [bed.report(probe), bed.series()];
    expect(series).toMatchObject({ [up()]: 0, [notOk()]: 1 });

    const again = health();
    bed.configure(again);
    expect(bed.report(probe)).toEqual(before);
    expect(bed.series()).toEqual(series);
    await bed.due(probe);
    expect([probe.checks.length, again.checks.length, probe.opened, probe.closed]).toEqual([2, 0, 1, 0]);
  });

  test('under other global tags gauges are shown at once, counters begin anew', async () => {
    const probe = health();
    const bed = await dueBed(probe);
    await probe.lastCheck.finds({ reason: 'not_ok', msg: 'no', tlsNotAfterMs: 1_800_000_000_000 });
    const lastRun = bed.clock.nowMs() / 1e3;
    renewIntakes(bed, { cluster: 'dc1' });
    bed.configure(probe);
    const tag = 'cluster="dc1",';
    expect(bed.series()).toEqual({
      [up(tag)]: 0,
      [notOk(tag)]: 0,
      [`svc_role_health_failures_total{${tag}reason="too_slow",svc_service="frontend"}`]: 0,
      [`svc_probe_failures_total{${tag}probe="health/frontend",reason="not_ok"}`]: 0,
      [`svc_probe_failures_total{${tag}probe="health/frontend",reason="too_slow"}`]: 0,
      [`svc_probe_last_run_timestamp_seconds{${tag}probe="health/frontend"}`]: lastRun,
      [`svc_probe_tls_not_after_timestamp_seconds{${tag}probe="health/frontend"}`]: 1_800_000_000,
      [`svc_probe_skipped_total{${tag}probe="health/frontend",reason="overlap"}`]: 0,
      [`svc_probe_skipped_total{${tag}probe="health/frontend",reason="backlog"}`]: 0,
    });
    await bed.due(probe);
    await probe.lastCheck.finds({ reason: 'not_ok', msg: 'no' });
    expect(bed.series()).toMatchObject({ [notOk(tag)]: 1 });
    expect(bed.dropped('refused_series')).toBe(0);
  });

  test('what had vanished stays away', async () => {
    const probe = health({ intervalMs: 10_000, timeoutMs: 10_000 });
    const bed = await dueBed(probe);
    await bed.pass(50_000, 10_000);
    expect(bed.series('svc_role_up')).toEqual({});
    renewIntakes(bed);
    bed.configure(probe);
    expect(bed.series('svc_role_up')).toEqual({});
  });

  test('a check under way goes on, and shows in the new intakes', async () => {
    const probe = health();
    const bed = await dueBed(probe);
    renewIntakes(bed, { cluster: 'dc1' });
    bed.configure(probe);
    expect(probe.lastCheck.signal.aborted).toBe(false);
    await probe.lastCheck.finds();
    expect(bed.series('svc_role_up')).toEqual({ [up('cluster="dc1",')]: 1 });
  });
});

describe('a reload of a probe whose key changed', () => {
  const changed = (script: Script = {}) => health({ ...script, row: { key: 'other', ...script.row } });

  test('ends the old one and begins the new one with what the old one remembered', async () => {
    const [before, after] = [health(), changed()];
    const bed = await dueBed(before);
    await before.lastCheck.finds({ reason: 'not_ok', msg: 'no', remember: { seen: 7 } });
    await bed.due(before);
    const { lastCheck } = before;
    bed.configure(after);
    expect(lastCheck.signal.aborted).toBe(true);
    expect(bed.report(after)).toMatchObject({ state: undefined, last: undefined, history: [] });
    // Its counters are the same series, so they continue. Its gauges were those of the old probe.
    expect(bed.series('svc_role')).toMatchObject({ [notOk()]: 1 });
    expect(bed.series('svc_role_up')).toEqual({});
    await lastCheck.finds({ reason: 'not_ok', msg: 'too late', remember: { seen: 8 } });
    expect(before.closed).toBe(1);
    expect(bed.series('svc_role')).toMatchObject({ [notOk()]: 1 });
    await bed.due(after);
    expect(after.lastCheck.recalled).toEqual({ seen: 7 });
    expect(before.checks).toHaveLength(2);
  });

  test('the new one waits for the lane until the old one has settled', async () => {
    const [before, after] = [health({ row: { lane: 'a' } }), changed({ row: { lane: 'a' } })];
    const bed = await dueBed(before);
    const { lastCheck } = before;
    bed.configure(after);
    await bed.pass(1999);
    expect(after.checks).toHaveLength(0);
    await lastCheck.finds();
    await bed.pass(10_000);
    expect(after.checks).toHaveLength(1);
  });

  test('or for two seconds at most', async () => {
    const [before, after] = [health({ row: { lane: 'a' } }), changed({ row: { lane: 'a' } })];
    const bed = await dueBed(before);
    bed.configure(after);
    await bed.pass(12_000, 100);
    expect(after.checks).toHaveLength(1);
    expect(before.closed).toBe(1);
  });
});

describe('a reload without the row', () => {
  test('ends it, closes it and takes its series away', async () => {
    const probe = health();
    const bed = await dueBed(probe);
    await probe.lastCheck.finds();
    bed.configure();
    expect(bed.series()).toEqual({});
    expect(bed.runner.reports()).toEqual([]);
    await bed.pass(600_000, 60_000);
    expect([probe.checks.length, probe.closed]).toEqual([1, 1]);
  });

  test('a check that answers while its row goes counts before that, or not at all', async () => {
    for (let turns = 0; turns < 20; turns++) {
      const bed = runnerBed();
      const probe = health();
      bed.configure(probe);
      const check = await bed.due(probe);
      const found = check.finds();
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      bed.configure();
      const heard = bed.heard.length;
      await found;
      expect([bed.heard.length, bed.series()], `${turns} turns`).toEqual([heard, {}]);
    }
  });

  test('one that never looked is never opened', async () => {
    const bed = runnerBed();
    const probe = health();
    bed.configure(probe);
    bed.configure();
    await bed.pass(60_000);
    expect([probe.opened, probe.closed, bed.clock.waiting]).toEqual([0, 0, 0]);
  });

  test('two rows of one name are refused', () => {
    const bed = runnerBed();
    expect(() => bed.configure(health(), health())).toThrow('probes: duplicate name, got "health/frontend"');
  });
});
