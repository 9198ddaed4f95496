/** Units that a lag may be sent in. */
export const lagUnits = ['seconds', 'milliseconds', 'microseconds', 'nanoseconds'] as const;
export type LagUnit = (typeof lagUnits)[number];

/** Where a number stands among the scraped metrics: the family, and the labels that name clusters. */
export interface ReadingPlace {
  /** In the catalog's words where it has one, else as it was sent, sanitized. */
  metric: string;
  sourceLabel?: string;
  targetLabel?: string;
}

export interface LagPlace extends ReadingPlace {
  unit: LagUnit;
}

/** `domains.replication`, defaults filled in; what is not there is looked for where real services have it. */
export interface ReplicationOptions {
  intervalMs: number;
  /** Gauge: age of the oldest change that a cluster has not taken yet. */
  lag?: LagPlace;
  /** Counter of tasks that this cluster applied. */
  applied?: ReadingPlace;
  /** Counter of tasks that failed. */
  failures?: ReadingPlace;
}
