import { compareText } from '../../core/registry/labels.ts';
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

/** The start or the end of one problem. */
interface Turn {
  event: TimelineEvent;
  subject: string;
  /** What turns that are told together have in common. */
  group: string;
}

const most = 200;
/** How far apart the starts of what happened together are seen: checks run half a minute apart. */
const togetherMs = 60_000;
/** How many further subjects of an event are named. */
const mostNamed = 6;

/**
 * The starts of open problems, the starts and ends of past incidents, and the changes, newest first. Problems of one kind that
 * began or ended together are one event.
 */
export function timelineOf({
  verdict,
  incidents,
  changes,
}: Pick<StatusReport, 'verdict' | 'incidents' | 'changes'>): TimelineEvent[] {
  const turns = [
    ...incidentsIn(verdict).map(({ since: at, severity, kind, subject, what: text }) =>
      turnOf({ at, kind: 'began', severity, text }, kind, subject),
    ),
    ...incidents.flatMap(({ start, end, severity, cause, subject, what, over, durationSeconds }) => [
      turnOf({ at: start, kind: 'began', severity, text: what }, cause, subject),
      turnOf(
        { at: end, kind: 'ended', severity, text: over },
        cause,
        subject,
        ` after ${span(durationSeconds)}`,
      ),
    ]),
  ];
  const events = [
    ...together(turns),
    ...changes.map(({ at, kind, what }): TimelineEvent => ({ at, kind, text: what })),
  ];
  return events.sort((a, b) => compareText(b.at, a.at)).slice(0, most);
}

/** Problems whose texts differ only in their subject and in their details belong together. */
function turnOf(event: TimelineEvent, cause: string, subject: string, after = ''): Turn {
  const [clause] = event.text.replace(subject, '').split(': ');
  const group = [event.kind, cause, event.severity, clause].join(' ');
  return { event: { ...event, text: `${event.text}${after}` }, subject, group };
}

/** One event for all turns of a group that lie within a minute, at the time of the first. */
function together(turns: readonly Turn[]): TimelineEvent[] {
  const all: [Turn, ...Turn[]][] = [];
  const newest = new Map<string, Turn[]>();
  for (const turn of [...turns].sort((a, b) => compareText(a.event.at, b.event.at))) {
    const known = newest.get(turn.group);
    if (known && Date.parse(turn.event.at) - Date.parse(known[0]!.event.at) < togetherMs) {
      known.push(turn);
      continue;
    }
    const begun: [Turn] = [turn];
    all.push(begun);
    newest.set(turn.group, begun);
  }
  return all.map(eventOf);
}

function eventOf([{ event, subject }, ...others]: readonly [Turn, ...Turn[]]): TimelineEvent {
  const names = [...new Set(others.map((one) => one.subject))].filter((name) => name !== subject);
  const named = names.length <= mostNamed ? `: ${names.join(', ')}` : '';
  return names.length > 0 ? { ...event, text: `${event.text}; ${names.length} more${named}` } : event;
}
