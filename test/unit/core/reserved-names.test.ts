import { describe, expect, it } from 'vitest';
import { agentMetrics } from '../../../src/core/agent-metrics.ts';
import type { Kind } from '../../../src/core/model.ts';
import { testRegistry } from '../../registry.ts';

/** An intake for the agent's own series, and one for received series. */
function both() {
  const bed = testRegistry();
  const own = bed.intake({ component: 'probes', relayed: false, received: false, rank: 5 });
  return { ...bed, own, sent: bed.intake() };
}

describe('a received series of an agent metric’s name', () => {
  it.each(['svc_role_up', 'svc.role.up', 'svc-role-up'])(
    '%s does not replace the agent’s own gauge',
    (name) => {
      const { own, sent, shown, refused } = both();
      sent.counter(name, {}).add(1);
      own.gauge('svc_role_up', { svc_service: 'frontend' }).set(0);
      sent.gauge(name, { svc_service: 'frontend' }).set(1);
      sent.counter(name, {}).add(1);
      expect(shown()).toEqual({ 'svc_role_up{svc_service="frontend"}': 0 });
      expect(refused('svc_role_up', 'reserved_name')).toBe(2);
    },
  );

  it.each(agentMetrics.map(({ name }) => name))('%s is refused in every kind', (name) => {
    const { sent, shown, registry } = both();
    const kinds: Kind[] = ['counter', 'gauge', 'untyped', 'histogram', 'summary'];
    for (const kind of kinds)
      sent
        .parts(kind, name, {}, { bounds: [1], quantiles: ['0.5'] })
        .part(0)
        .set(1);
    expect(shown()).toEqual({});
    expect(registry.status().refusals).toEqual([{ family: name, reason: 'reserved_name', count: 5 }]);
  });

  it.each<[string, Kind, string]>([
    ['a counter whose OpenMetrics family is the agent’s', 'counter', 'svc_log_bytes'],
    ['any name with the agent’s prefix', 'gauge', 'svc_agent_nodejs_heap_size_used_bytes'],
    ['any name with the agent’s prefix and a part', 'counter', 'svc_agent_nodejs_gc_duration_seconds_count'],
  ])('%s is refused', (_, kind, name) => {
    const { sent, shown, refused } = both();
    sent.parts(kind, name, {}).part(0).set(1);
    expect(shown()).toEqual({});
    expect(refused(name, 'reserved_name')).toBe(1);
  });

  it('a log source keeps the log metrics, and no others', () => {
    const { intake, shown, refused } = both();
    const logs = intake({ component: 'logs', relayed: false });
    logs.counter('svc_log_entries_total', { level: 'info', logger: 'a' }).add(1);
    logs.counter('svc_role_up', {}).add(1);
    logs.counter('svc_login_total', {}).add(1);
    expect(shown()).toEqual({ 'svc_log_entries_total{level="info",logger="a"}': 1, svc_login_total: 1 });
    expect(refused('svc_role_up', 'reserved_name')).toBe(1);
  });
});
