import { describe, expect, test } from 'vitest';
import { dueBed, scripted } from '../unit/probes/runner/bed.ts';

const dayMs = 864e5;

describe.each([
  ['a day ahead', dayMs],
  ['a day back', -dayMs],
  ['half an interval ahead', 30_000],
  ['back before 1970', -2e12],
])('the wall clock jumps %s', (_, jumpMs) => {
  const scene = async () => {
    const probe = scripted('health/a', { intervalMs: 60_000 });
    const bed = await dueBed(probe);
    await probe.lastCheck.finds({ gauges: [{ name: 'svc_clusters', labels: {}, value: 1 }] });
    const dueInMs = bed.report(probe).nextRunMs - bed.clock.nowMs();
    bed.clock.jumpTo(bed.clock.nowMs() + jumpMs);
    return { bed, probe, dueInMs };
  };

  test('runs come an interval apart as before; none is left out or made up for', async () => {
    const { bed, probe, dueInMs } = await scene();
    expect(bed.report(probe).nextRunMs - bed.clock.nowMs()).toBe(dueInMs);
    const { ageMs } = bed.report(probe);
    await bed.pass(dueInMs - 1);
    expect(bed.report(probe).ageMs).toBe(ageMs! + dueInMs - 1);
    expect(probe.checks).toHaveLength(1);
    await bed.pass(1);
    expect(probe.checks).toHaveLength(2);
    await probe.lastCheck.finds();
    await bed.pass(59_999);
    expect(probe.checks).toHaveLength(2);
    await bed.pass(1);
    expect(probe.checks).toHaveLength(3);
    expect(bed.report(probe).skipped).toEqual({ overlap: 0, backlog: 0 });
  });

  test('during a check: how long it took is right, its moment is what the clock says', async () => {
    const { bed, probe } = await scene();
    await bed.due(probe);
    await bed.pass(70);
    bed.clock.jumpTo(bed.clock.nowMs() - jumpMs);
    await bed.pass(30);
    await probe.lastCheck.finds();
    expect(bed.report(probe).last).toMatchObject({ durationMs: 100, atMs: bed.clock.nowMs() });
    expect(bed.series('svc_probe_last_run')).toEqual({
      'svc_probe_last_run_timestamp_seconds{probe="health/a"}': bed.clock.nowMs() / 1e3,
    });
  });

  test('gauges vanish by the time that went by, and a young result stays young', async () => {
    const { bed, probe, dueInMs } = await scene();
    await bed.runner.checkNow('health/a');
    expect(probe.checks).toHaveLength(1);
    expect(bed.series('svc_clusters')).toEqual({ svc_clusters: 1 });
    // The next check hangs, so that nothing follows its own result.
    await bed.pass(dueInMs);
    await bed.pass(5000);
    expect(bed.series('svc_probe_last_run')).not.toEqual({});
    await bed.pass(179_999, 60_000);
    expect(bed.series('svc_probe_last_run')).not.toEqual({});
    await bed.pass(1);
    expect(bed.series('svc_probe_last_run')).toEqual({});
  });
});
