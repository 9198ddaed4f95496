import { until } from '../../until.ts';
import type { Notice } from '../alertmanager.ts';
import type { Expected } from './fault.ts';
import type { AgentName, Stage } from './stage.ts';

type Labels = Readonly<Record<string, string>>;

/** What happens with the alerts of a stage. */
export interface Watch {
  /** All labels of an alert. */
  labelsOf(expected: Expected): Labels;
  /** Waits for a fact; gives up at the deadline, or as soon as concurrent work has failed. */
  wait<T>(what: string, fact: () => Promise<T | undefined> | T | undefined, deadlineMs: number): Promise<T>;
  /** The last notice of an alert that the receivers got; with `since`, only notices after that many. */
  lastNotice(expected: Expected, since?: number): Notice | undefined;
  /** Whether Alertmanager has the alert. */
  isHeld(expected: Expected): Promise<boolean>;
  /** The alerts that inhibit it in Alertmanager, as `ALERT PACK SEVERITY`. */
  inhibitors(expected: Expected): Promise<string[]>;
  /** The alerts that do not fire in Prometheus. */
  silent(alerts: readonly Expected[]): Promise<Expected[]>;
  /**
   * Plays a scene during which every agent exists. If scrapes missed their second meanwhile, as on a busy machine, alerts came
   * and went for that reason: then a failure proves nothing, and the scene is played again.
   */
  play(scene: () => Promise<void>): Promise<void>;
}

const mostRounds = 5;
/** A scrape at either end of a scene may be outside of it, and one missed scrape makes nothing fire. */
const scrapesSpared = 2;

const isSame = (one: Labels, other: Labels): boolean =>
  JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort());

/** An alert in the notation of PromQL, for people. */
export const nameOf = ({ alert, labels }: Expected): string =>
  `${alert}{${Object.entries(labels).map(([name, value]) => `${name}="${value}"`)}}`;

export function watchOn(stage: Stage): Watch {
  const { alertmanager, prometheus, agents } = stage;
  const labelsOf = ({ alert, severity, pack = 'recommended', labels }: Expected): Labels => {
    const { instance, ...rest } = labels;
    const where: Labels = instance === undefined ? {} : { instance: agents[instance as AgentName].address };
    return { alertname: alert, severity, pack, ...rest, ...where };
  };
  const missedScrapesSince = async (startMs: number): Promise<boolean> => {
    const seconds = Math.ceil((performance.now() - startMs) / 1000);
    const taken = await prometheus.value(`min(sum_over_time(up{job="svc-agent"}[${seconds}s]))`);
    return taken < seconds - scrapesSpared;
  };
  return {
    labelsOf,
    async play(scene) {
      for (let round = 1; ; round++) {
        const startMs = performance.now();
        try {
          return await scene();
        } catch (thrown) {
          if (round === mostRounds || !(await missedScrapesSince(startMs))) throw thrown;
        }
      }
    },
    wait: (what, fact, deadlineMs) =>
      until(
        what,
        () => {
          stage.check();
          return fact();
        },
        // Prometheus evaluates twice a second; more queries cost time and show nothing new.
        { everyMs: 250, withinMs: Math.max(1, deadlineMs - performance.now()) },
      ),
    lastNotice: (expected, since = 0) =>
      alertmanager.notices.slice(since).findLast(({ labels }) => isSame(labels, labelsOf(expected))),
    isHeld: async (expected) =>
      (await alertmanager.held()).some(({ labels }) => isSame(labels, labelsOf(expected))),
    async inhibitors(expected) {
      const held = await alertmanager.held();
      const found = held.find(({ labels }) => isSame(labels, labelsOf(expected)));
      return (found?.status.inhibitedBy ?? []).map((by) => {
        const { alertname, pack, severity } = held.find(({ fingerprint }) => fingerprint === by)!.labels;
        return `${alertname} ${pack} ${severity}`;
      });
    },
    async silent(alerts) {
      const firing = await prometheus.firing();
      return alerts.filter((expected) => !firing.some((labels) => isSame(labels, labelsOf(expected))));
    },
  };
}
