import type { Stage } from './stage.ts';

export type Severity = 'critical' | 'warning' | 'info';

/** One alert that must come of a fault. */
export interface Expected {
  alert: string;
  severity: Severity;
  /** Default: recommended. */
  pack?: 'recommended' | 'slo';
  /** All others of its labels. For `instance` the name of an agent, which stands for its address. */
  labels: Readonly<Record<string, string>>;
  /** What its description says, value included. */
  says: RegExp;
  /** What may hold it back while it fires, as `ALERT PACK SEVERITY`. */
  heldBackBy?: readonly string[];
  /** Is an event of its own choosing, which may be over before the fault is. */
  comesAndGoes?: true;
}

/** Something that is done to the service, to what it depends on or to the agent, and its end. */
export interface Fault {
  /** What is done. */
  what: string;
  provoke(stage: Stage): unknown;
  /** Once a second until the end, for what is an event and no state. */
  again?(stage: Stage): unknown;
  undo(stage: Stage): unknown;
  alerts: readonly Expected[];
}

/** Shorthand of the tables. */
const alertOf =
  (severity: Severity) =>
  (alert: string, labels: Expected['labels'], says: RegExp): Expected => ({ alert, severity, labels, says });
export const critical = alertOf('critical');
export const warning = alertOf('warning');
export const info = alertOf('info');
