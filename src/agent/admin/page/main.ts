import { changeText, type Evidence, type Problem, type StatusReport } from '../../report.ts';
import { type Alike, alike } from '../../verdict/alike.ts';
import { type TimelineEvent, timelineOf } from '../timeline.ts';
import * as agent from './agent-section.ts';
import { backups } from './backup-section.ts';
import { type Data, follow, silentMs } from './data.ts';
import { type Child, draw, h } from './dom.ts';
import { domains, hasManyDomains } from './domain-section.ts';
import { ago, moment, span, zonedMoment } from './format.ts';
import { type Frame, folded, glyph, section, toneOf } from './parts.ts';
import { drawPlots, type Mark, timeLine } from './plots.ts';
import { roles } from './role-section.ts';
import { loadRunbook, openRunbook } from './runbook.ts';
import { stores } from './store-section.ts';
import { axis } from './targets.ts';

const windows = [
  ['15 min', 900],
  ['1 h', 3_600],
  ['4 h', 14_400],
] as const;
type Window = (typeof windows)[number];

/** The reader's choices. They are in the address, so that a link shows the same. */
const chosen = new URLSearchParams(location.search);
let shownWindow: Window | undefined = windows.find(([name]) => name === chosen.get('window'));
let filter = chosen.get('filter') ?? '';

function keepInAddress(name: 'window' | 'filter', value: string): void {
  if (value === '') chosen.delete(name);
  else chosen.set(name, value);
  const query = chosen.toString();
  history.replaceState(null, '', query ? `?${query}` : location.pathname);
}

/** The window that the reader chose, or else the first window that contains everything the agent has seen. */
function windowOf({ report }: Data): Window {
  if (shownWindow) return shownWindow;
  const ageSeconds = report ? (Date.parse(report.now) - Date.parse(report.startedAt)) / 1e3 : 0;
  return windows.find(([, seconds]) => seconds >= ageSeconds) ?? windows[2];
}

const find = (selector: string) => document.querySelector<HTMLElement>(selector)!;
const main = find('#main');

function frameOf(data: Data): Frame {
  const [shownText, seconds] = windowOf(data);
  return {
    // The agent's clock is used, because its measurements have times of that clock.
    nowMs: Date.parse(data.report?.now ?? '') || Date.now(),
    shown: Math.round((seconds * 1e3) / data.plotted.stepMs),
    shownText,
    takes: (name) => name.toLowerCase().includes(filter.toLowerCase()),
  };
}

/** The runbook for an agent that does not answer. */
const ofSilence = 'SvcAgentDown';

const runbook = (name: string | undefined): Child =>
  name !== undefined &&
  h(
    'button',
    { type: 'button', class: 'todo', click: () => void openRunbook(name) },
    'What to do',
    h('span', { class: 'hidden' }, ` about ${name}`),
  );

/** The time of what the headline says. If the agent is silent, that is its last answer, whatever it said about. */
function timeOfVerdict(
  { verdict: { cause } }: StatusReport,
  { nowMs }: Frame,
  silentSeconds: number | undefined,
): Child {
  if (silentSeconds !== undefined)
    return `Last answer at ${zonedMoment(nowMs, nowMs)} (${span(silentSeconds)} ago)`;
  const since = cause?.since;
  if (since === undefined) return `As of ${zonedMoment(nowMs, nowMs)}`;
  const age = h('time', { datetime: since }, span((nowMs - Date.parse(since)) / 1e3));
  return [`Since ${zonedMoment(since, nowMs)} (`, age, ')'];
}

/**
 * The banner with the verdict: whether everything is well; if not, what is wrong and since when. `silentSeconds`: how long the
 * agent has been silent; undefined if it answers.
 */
function banner(report: StatusReport, frame: Frame, silentSeconds: number | undefined): HTMLElement {
  const { verdict, maintenance, maintenanceReason } = report;
  const { level, headline, problems } = verdict;
  const isSilent = silentSeconds !== undefined;
  // There is a runbook for an agent that does not answer.
  const name = isSilent ? ofSilence : problems[0]?.runbook;
  const tone = isSilent ? 'quiet' : toneOf(level);
  return h(
    'div',
    { class: `banner ${tone}`, key: 'banner' },
    h('div', { class: 'disc' }, glyph(tone)),
    h(
      'div',
      { class: 'words' },
      h(
        'div',
        { role: 'status' },
        h('h1', {}, isSilent ? 'No answer from the agent: this page may be out of date' : headline),
      ),
      h('p', { class: 'since' }, timeOfVerdict(report, frame, silentSeconds)),
      maintenance !== undefined &&
        h(
          'p',
          { class: 'since' },
          `Planned work until ${zonedMoment(maintenance, frame.nowMs)}: ${maintenanceReason}`,
        ),
    ),
    name !== undefined && h('div', { class: 'act' }, runbook(name)),
  );
}

const evidenceNames = {
  probe: 'Probe',
  value: 'Value',
  log: 'Log',
  exit: 'Exit',
  conflict: 'Conflict',
} as const;

const evidenceItem = ({ source, text, at }: Evidence, nowMs: number): HTMLElement =>
  h(
    'li',
    {},
    h('span', { class: 'muted' }, `${evidenceNames[source]}: `),
    text,
    at !== undefined && h('time', { class: 'muted', datetime: at }, `, ${moment(at, nowMs)}`),
  );

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The note on a problem that cannot be read. */
const doubt = (since: string | undefined, nowMs: number): string =>
  since === undefined ? '' : `; since ${moment(since, nowMs)}, it is not known whether the problem lasts`;

/** What a cause took down, folded under it; equal kinds are together. */
function consequences(cause: Problem, byId: ReadonlyMap<string, Problem>, nowMs: number): Child {
  const found = cause.consequences.flatMap((id) => byId.get(id) ?? []);
  const item = ({ id, what, unreadSince }: Problem) =>
    h('li', { key: id }, `${capital(what)}${doubt(unreadSince, nowMs)}`);
  return (
    found.length > 0 &&
    h(
      'details',
      { key: `${cause.id} consequences`, class: 'more' },
      h('summary', {}, `${found.length} ${found.length === 1 ? 'problem' : 'problems'} because of it`),
      folded({ key: `${cause.id} more`, most: 20 }, found, (part) =>
        h('ul', { class: 'plainlist' }, part.map(item)),
      ),
    )
  );
}

/** The evidence of a cause, and what changed before it. */
function evidenceOf({ evidence, changes = [] }: Problem, nowMs: number): Child {
  return (
    evidence.length + changes.length > 0 &&
    h(
      'ul',
      { class: 'plainlist small evidence' },
      evidence.map((one) => evidenceItem(one, nowMs)),
      changes.map((change) =>
        h(
          'li',
          {},
          h('span', { class: 'muted' }, 'Before: '),
          `${changeText(change)}, `,
          h('time', { datetime: change.at }, moment(change.at, nowMs)),
        ),
      ),
    )
  );
}

/** The causes, each with its evidence and with what it took down. */
function problems({ verdict }: StatusReport, { nowMs }: Frame): Child {
  const byId = new Map(verdict.problems.map((problem) => [problem.id, problem]));
  const item = ({ problem, others, first, last }: Alike) => {
    const { id, severity, what, fix, since, reasonSince, unreadSince, runbook: name } = problem;
    const another = reasonSince ? `, for this reason since ${moment(reasonSince, nowMs)}` : '';
    const tone = severity === 'critical' ? 'bad' : 'warn';
    return h(
      'li',
      { key: id, class: `problem ${tone}` },
      glyph(tone),
      h(
        'div',
        { class: 'words' },
        h('p', { class: 'what' }, h('span', { class: 'hidden' }, `${severity}: `), capital(what)),
        h(
          'p',
          { class: 'small muted' },
          `since ${moment(since, nowMs)}, ${ago(since, nowMs)}${another}${doubt(unreadSince, nowMs)}`,
        ),
        evidenceOf(problem, nowMs),
        fix && h('p', { class: 'fix small' }, 'Fix: ', h('code', {}, fix)),
        consequences(problem, byId, nowMs),
        others.length > 0 &&
          h(
            'details',
            { key: `${id} alike`, class: 'more' },
            h(
              'summary',
              {},
              `${others.length} more of this kind, the first since ${moment(first, nowMs)}, the last since ${moment(last, nowMs)}`,
            ),
            folded({ key: `${id} more alike`, most: 20 }, others, (part) =>
              h('ul', { class: 'plainlist' }, part.map(oneOf)),
            ),
          ),
      ),
      runbook(name),
    );
  };
  const oneOf = ({ id, what, since }: Problem) =>
    h('li', { key: id }, `${capital(what)}, since ${moment(since, nowMs)}`);
  const causes = alike(verdict.problems.filter(({ causedBy }) => causedBy === undefined));
  return (
    causes.length > 0 &&
    h(
      'section',
      { class: 'problems', key: 'problems', 'aria-label': 'Problems' },
      folded({ key: 'more-problems', most: 6 }, causes, (part) => h('ul', {}, part.map(item))),
    )
  );
}

function happened({ plotted }: Data, report: StatusReport, frame: Frame): Child {
  const { nowMs, shown } = frame;
  const events = timelineOf(report);
  const toneText = { began: { critical: 'bad', warning: 'warn' } } as const;
  const marks = events.map(
    ({ at, kind, severity, text }): Mark => ({
      atMs: Date.parse(at),
      kind: kind === 'began' ? (severity === 'critical' ? 'down' : 'warned') : kind,
      text,
    }),
  );
  const item = ({ at, kind, severity = 'warning', text }: TimelineEvent, i: number) =>
    h(
      'li',
      { key: `${at} ${i}`, class: 'event' },
      h('time', { class: 'muted number', datetime: at }, moment(at, nowMs)),
      h(
        'span',
        { class: `tag ${kind === 'began' ? toneText.began[severity] : kind === 'ended' ? 'good' : 'quiet'}` },
        kind,
      ),
      h('span', {}, text),
    );
  return section(
    { id: 'events', title: 'What happened', aside: axis(frame) },
    timeLine('Events', marks, plotted, shown),
    events.length > 0
      ? folded({ key: 'more-events', most: 8 }, events, (part) =>
          h('ol', { class: 'events' }, part.map(item)),
        )
      : h('p', { class: 'note' }, 'Nothing has happened in the last 30 days.'),
  );
}

/** Whether the windows were drawn, which needs the age of the agent. */
let hasWindows = false;

function show(data: Data, { ticked }: { ticked: boolean }): void {
  const { report, lastMessageMs } = data;
  if (!report) return;
  const frame = frameOf(data);
  if (!hasWindows) drawWindows();
  hasWindows = true;
  const unheardMs = lastMessageMs === undefined ? 0 : Date.now() - lastMessageMs;
  const isSilent = unheardMs > silentMs;
  const silentSeconds = isSilent ? unheardMs / 1e3 : undefined;
  document.documentElement.classList.toggle('silent', isSilent);
  draw(find('#instance'), report.instance);
  draw(find('#link'), isSilent ? `no data for ${span(unheardMs / 1e3)}` : 'live');
  const mark = isSilent ? '?' : { ok: '✓', unknown: '…', warning: '!', critical: '✕' }[report.verdict.level];
  document.title = `${mark} ${report.verdict.headline} – ${report.instance}`;
  draw(
    main,
    banner(report, frame, silentSeconds),
    problems(report, frame),
    h(
      'div',
      { class: `grid${hasManyDomains(report) ? ' dense' : ''}`, key: 'grid' },
      roles(data, report, frame),
      happened(data, report, frame),
      domains(data, report, frame),
      stores(data, report, frame),
      backups(data, report, frame),
      agent.logs(data, report, frame),
      agent.cardinality(data, report, frame),
      h(
        'div',
        { class: 'stack', key: 'stack' },
        agent.self(data, report, frame),
        agent.delivery(data, report, frame),
      ),
    ),
  );
  if (ticked || isUnplotted()) drawPlots(data.plotted, frame.shown);
}

/** Whether a plot has its place and nothing is drawn in it. */
const isUnplotted = () => document.querySelector('[data-plot]:empty') !== null;

// An agent that does not answer cannot send it any more.
void loadRunbook(ofSilence);
const data = follow(show);
const again = () => show(data, { ticked: true });

function drawWindows(): void {
  const selected = windowOf(data);
  draw(
    find('#window'),
    h('legend', { class: 'hidden' }, 'Time range of the plots'),
    windows.map((one) =>
      h(
        'label',
        {},
        h('input', {
          type: 'radio',
          name: 'window',
          value: one[0],
          checked: one === selected,
          change: () => {
            shownWindow = one;
            keepInAddress('window', one[0]);
            again();
          },
        }),
        h('span', {}, one[0]),
      ),
    ),
  );
}
const filterField = find('#filter') as HTMLInputElement;
filterField.value = filter;
filterField.addEventListener('input', () => {
  filter = filterField.value.trim();
  keepInAddress('filter', filter);
  again();
});
new ResizeObserver(() => drawPlots(data.plotted, frameOf(data).shown)).observe(main);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
document.addEventListener('toggle', () => drawPlots(data.plotted, frameOf(data).shown), true);
// Notices when the agent no longer answers.
setInterval(() => {
  if (Date.now() - (data.lastMessageMs ?? 0) > 2_000) show(data, { ticked: false });
}, 1_000);
