import { compareText } from '../../core/labels.ts';
import type { Change, Problem, StatusReport } from '../report.ts';
import { incidentsIn } from '../verdict/alike.ts';
import { span } from './page/format.ts';

/** An event on the time line. */
export interface TimelineEvent {
  /** The time, RFC 3339. */
  at: string;
  kind: 'began' | 'ended' | Change['kind'];
  /** Severity of the problem that began or ended. */
  severity?: Problem['severity'];
  /** The text, which contains text from outside and must be escaped. */
  text: string;
}

const most = 200;

/** The starts of open problems, the starts and ends of past incidents, and the changes, newest first. */
export function timelineOf({
  verdict,
  incidents,
  changes,
}: Pick<StatusReport, 'verdict' | 'incidents' | 'changes'>): TimelineEvent[] {
  const events = [
    ...incidentsIn(verdict).map(
      ({ since, severity, what }): TimelineEvent => ({ at: since, kind: 'began', severity, text: what }),
    ),
    ...incidents.flatMap(({ start, end, severity, what, over, durationSeconds }): TimelineEvent[] => [
      { at: start, kind: 'began', severity, text: what },
      { at: end, kind: 'ended', severity, text: `${over} after ${span(durationSeconds)}` },
    ]),
    ...changes.map(({ at, kind, what }): TimelineEvent => ({ at, kind, text: what })),
  ];
  return events.sort((a, b) => compareText(b.at, a.at)).slice(0, most);
}
