import { agentMetric } from './agent-metrics.ts';
import type { Counter, Gauge, Intake } from './model.ts';
import { compareText } from './names.ts';
import type { Room } from './room.ts';

/** How many series a family has. */
export interface FamilySize {
  readonly family: string;
  readonly series: number;
}

const shownFamilies = 20;
const sizes = agentMetric('svc_agent_series');
const refusals = agentMetric('svc_agent_series_refused_total');

/** The largest families, then the rest together as `other`. */
export function familySizes(room: Room): FamilySize[] {
  const all = [...room.families.values()]
    .filter((family) => family.series.size > 0)
    .map((family) => ({ family: family.name, series: family.series.size }))
    .sort((a, b) => b.series - a.series || compareText(a.family, b.family));
  const rest = all.slice(shownFamilies).reduce((sum, { series }) => sum + series, 0);
  return [...all.slice(0, shownFamilies), { family: 'other', series: rest }];
}

/**
 * What the registry says of itself: `svc_agent_series{family}` and
 * `svc_agent_series_refused_total{family,reason}`. Call `refresh` before a picture is taken; it is free while no
 * series comes, goes or is refused.
 */
export function createSelfSeries(room: Room, intake: Intake): { refresh(): void } {
  let gauges = new Map<string, Gauge>();
  const counters = new Map<string, Counter>();
  let seenVersion = -1;

  const refreshSizes = () => {
    const now = new Map<string, Gauge>();
    for (const { family, series } of familySizes(room)) {
      const gauge = gauges.get(family) ?? intake.gauge(sizes.name, { family }, { help: sizes.help });
      gauge.set(series);
      now.set(family, gauge);
    }
    for (const [family, gauge] of gauges) if (!now.has(family)) gauge.release();
    gauges = now;
  };

  const refreshRefusals = () => {
    for (const { family, reason, count } of room.tally.counts()) {
      const key = `${reason} ${family}`;
      let counter = counters.get(key);
      if (!counter) {
        counter = intake.counter(refusals.name, { family, reason }, { help: refusals.help });
        counters.set(key, counter);
      }
      counter.set(count);
    }
  };

  return {
    refresh() {
      refreshRefusals();
      if (room.version !== seenVersion) refreshSizes();
      seenVersion = room.version;
    },
  };
}
