import type { Stage } from './stage.ts';

export type Severity = 'critical' | 'warning' | 'info';

/** One alert that a fault must cause. */
export interface Expected {
  alert: string;
  severity: Severity;
  /** Default: recommended. */
  pack?: 'recommended' | 'slo';
  /** All other labels. The label `instance` has the name of an agent, which stands for its address. */
  labels: Readonly<Record<string, string>>;
  /** Matches the description, including the value. */
  says: RegExp;
  /** The alerts that may inhibit it while it fires, as `ALERT PACK SEVERITY`. */
  heldBackBy?: readonly string[];
  /** Set if the alert is about an event whose time the test does not choose, so that it may be over before the fault is. */
  comesAndGoes?: true;
}

/** Something that is done to the service, to what it depends on or to the agent, and how it is ended. */
export interface Fault {
  /** What is done. */
  what: string;
  provoke(stage: Stage): unknown;
  /** Called once a second until the end, for an event that is no state. */
  again?(stage: Stage): unknown;
  undo(stage: Stage): unknown;
  alerts: readonly Expected[];
}

/** A shorthand for the tables. */
const alertOf =
  (severity: Severity) =>
  (alert: string, labels: Expected['labels'], says: RegExp, ...heldBackBy: string[]): Expected => ({
    ...{ alert, severity, labels, says },
    ...(heldBackBy.length > 0 && { heldBackBy }),
  });
export const critical = alertOf('critical');
export const warning = alertOf('warning');
export const info = alertOf('info');
