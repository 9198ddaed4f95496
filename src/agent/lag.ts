import { agentMetric } from '../core/agent-metrics.ts';
import type { Gauge } from '../core/model.ts';
import type { Intakes } from './intakes.ts';

const family = agentMetric('svc_log_lag_bytes');

/** Keeps `svc_log_lag_bytes` of each service; after a reload the gauges are asked for anew, at what was told last. */
export function createLag() {
  const told = new Map<string, number>();
  let gauges = new Map<string, Gauge>();
  let intakes: Intakes | undefined;

  const set = (service: string, bytes: number) => {
    const gauge = gauges.get(service) ?? intakes?.lag(service).gauge(family.name, {}, { help: family.help });
    if (!gauge) return;
    gauge.set(bytes);
    gauges.set(service, gauge);
  };
  return {
    hear(service: string, bytes: number): void {
      told.set(service, bytes);
      set(service, bytes);
    },
    /** Other intakes from now on; only these services still have a lag. */
    renew(next: Intakes, services: ReadonlySet<string>): void {
      intakes = next;
      gauges = new Map();
      for (const [service, bytes] of told) {
        if (services.has(service)) set(service, bytes);
        else told.delete(service);
      }
    },
  };
}
