import { roles } from '../core/catalog.ts';

/** The jobs of the shipped scrape configuration (deploy/prometheus/prometheus.yml): one per role, and the job of the agents. */
export const jobs = [...roles, 'svc-agent'] as const;
export type Job = (typeof jobs)[number];

/** The names that differ between an installation and the shipped files. */
export interface Naming {
  /** The `prefix` of the reporters: `p` makes `p_name`. */
  prefix: string;
  /** Names of scrape jobs. */
  jobs: Readonly<Partial<Record<Job, string>>>;
}

/** Metric names and job matchers for expressions. */
export interface Names {
  /** The name of a metric, with the prefix of the reporters. */
  m(name: `svc_${string}`): string;
  /** The name of a scrape job, in the form of a replacement for `label_replace`. */
  jobName(job: Job): string;
  /** A matcher of these scrape jobs, such as `job="frontend"`. */
  job(...wanted: readonly Job[]): string;
}

export const shippedNaming: Naming = { prefix: '', jobs: {} };

export function namesOf({ prefix, jobs: named }: Naming): Names {
  const nameOf = (job: Job): string => named[job] ?? job;
  return {
    m: (name) => (prefix ? `${prefix}_${name}` : name),
    jobName: (job) => JSON.stringify(nameOf(job).replaceAll('$', '$$$$')),
    job(...wanted) {
      const [only] = wanted;
      if (wanted.length === 1) return `job=${JSON.stringify(nameOf(only!))}`;
      return `job=~${JSON.stringify(wanted.map((job) => escaped(nameOf(job))).join('|'))}`;
    },
  };
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/**
 * The labels that every rule preserves and joins on; they say to which cluster series belong. `environment` comes only from the
 * scrape configuration, if one Prometheus has several environments that may use the same names of clusters, domains and stores.
 * Without it the label is empty everywhere.
 */
export const site = 'environment, cluster';

/**
 * The increase of a counter over a span, including the first values of new series. A relayed counter appears with its first
 * event, so `increase()` alone never sees a first burst. The first value counts if `reference`, a series of the same process, was
 * already there at the beginning of the span. Otherwise the target is new or was not scraped, and its old total is not an
 * increase.
 */
export function increaseWithNewSeries(counter: string, reference: string, span: string): string {
  const increase = `increase(${counter}[${span}])`;
  const ofNewSeries = `(min_over_time(${counter}[${span}]) unless ${counter} offset ${span})`;
  const known = `${ofNewSeries} and on (${site}, svc_service, instance) ${reference} offset ${span}`;
  return `${increase} + (${known}) or ${increase}`;
}

/** A series with a part of its label `subject` as another label. */
export const withPart = (series: string, label: string, part: string): string =>
  `label_replace(${series}, "${label}", "$1", "subject", "${part}")`;
/** Incidents of stores with their subject, such as `main/persistence`, as the labels of a store. */
export const withStore = (incidents: string): string =>
  withPart(withPart(incidents, 'store', '([^/]*).*'), 'database', '[^/]*/?(.*)');
