import type { Alert, DashboardName } from '../alert.ts';

/**
 * How long an outage can still be seen in alerts on windows of a length: the window, and two minutes for scrapes,
 * evaluations and clients that connect again.
 */
const seenFor = { '5m': '7m', '30m': '32m' } as const;
type Window = keyof typeof seenFor;

/** The end of an outage, by the alert that told of it. */
export interface End {
  name: Alert['name'];
  /** The alert that is over. */
  of: Alert['name'];
  /** Labels that the inhibitions of the alert need. */
  by: string;
  /** What was down, as the beginning of a sentence. */
  subject: string;
  /** Windows of the alerts that the outage explains. */
  windows: readonly Window[];
  dashboard: DashboardName;
}

/**
 * Alerts for the record that there was an outage a short time ago. They are the second source of the inhibitions
 * that the outage's own alert begins: an alert on a window still sees the outage when the first source is over. They
 * begin with the outage, so that Alertmanager has no moment without a source; until its end the first source keeps
 * them from notifying. They read ALERTS, so that an outage that never fired explains nothing.
 */
export const recovering = ({ name, of, by, subject, windows, dashboard }: End): Alert[] =>
  windows.map((window) => ({
    name,
    severity: 'info',
    expr: () =>
      `max by (${by}) (max_over_time(ALERTS{alertname="${of}", alertstate="firing", pack="recommended"}[${seenFor[window]}])) == 1`,
    labels: { window },
    summary: `${subject} was down a short time ago.`,
    description: `${subject} was down a short time ago: ${of} was {{ $value }} within the last ${seenFor[window]}. Until then the alerts that it explains stay inhibited, as far as they look at ${window} or less.`,
    firstSteps: `Wait until the alert ends. What fires then is not explained by ${of}.`,
    dashboard,
  }));
