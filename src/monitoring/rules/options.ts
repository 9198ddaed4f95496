import { roles } from '../../core/catalog.ts';

/** The jobs of the shipped scrape configuration (CONTRACT, HTTP): one per role, and the agent's. */
export const jobs = [...roles, 'svc-agent'] as const;
export type Job = (typeof jobs)[number];

/** What an operator may have otherwise than the shipped files. */
export interface RuleOptions {
  /** Own names of scrape jobs. */
  jobs: Readonly<Partial<Record<Job, string>>>;
  /** `prefix` of the reporters: `p` makes `p_name`. */
  prefix: string;
  /** Labels that every alert gets besides. */
  labels: Readonly<Record<string, string>>;
  /** By alert; of an objective's alerts the objective. */
  thresholds: Readonly<Record<string, number>>;
  /** By alert, in Prometheus' notation. */
  fors: Readonly<Record<string, string>>;
  /** Where the folder `runbooks` is served; a link is this, a slash and `<AlertName>.md`. */
  runbookUrl: string;
  /** Grafana's address; empty makes paths that a Grafana of any address understands. */
  dashboardUrl: string;
}

export const shippedOptions: RuleOptions = {
  jobs: {},
  prefix: '',
  labels: {},
  thresholds: {},
  fors: {},
  runbookUrl: 'runbooks',
  dashboardUrl: '',
};
