import type { ProbeStatus, StatusReport } from '../../report.ts';
import { reasonOf, sinceOf } from '../../verdict/probe-text.ts';
import type { Data } from './data.ts';
import { type Child, h } from './dom.ts';
import { percent, span } from './format.ts';
import { type Frame, pill, type Tone } from './parts.ts';
import { availability, strip } from './plots.ts';

export const probesOf = ({ probes }: StatusReport, kind: ProbeStatus['kind']): ProbeStatus[] =>
  probes.filter((probe) => probe.kind === kind);

/** The state of a probe's target, in one word. */
export function stateOf({ state, last, flapping }: ProbeStatus): [Tone, string] {
  if (!last) return ['quiet', 'not checked yet'];
  if (state === 'down') return ['bad', 'down'];
  if (!last.ok) return ['warn', 'failing'];
  return flapping ? ['warn', 'flapping'] : ['good', 'up'];
}

/** The ends of the time axis of strips and plots. */
export const axis = ({ shownText }: Frame): HTMLElement =>
  h('div', { class: 'axis', 'aria-hidden': 'true' }, h('span', {}, `${shownText} ago`), h('span', {}, 'now'));

/** `for 3 h`, or nothing if the beginning of the target's state is not known. */
export function sinceText(
  probe: ProbeStatus | undefined,
  { report }: Pick<Data, 'report'>,
  { nowMs }: Frame,
): Child {
  const since = probe && sinceOf(probe, report?.verdict.problems ?? []);
  return since && h('span', { class: 'muted' }, `for ${span((nowMs - Date.parse(since)) / 1e3)}`);
}

interface TargetView {
  key: string;
  title: string;
  state: readonly [Tone, string];
  /** Shown beside the state. */
  aside?: Child;
  /** The series of the target's availability. */
  series: string;
  className?: string;
}

/** One target of a section: its title, state, availability in percent and as a strip, and further content. */
export function targetItem(
  target: TargetView,
  { plotted }: Data,
  { shown }: Frame,
  ...more: Child[]
): HTMLElement {
  const { key, title, state, aside, series, className = 'target' } = target;
  const share = availability(series, plotted, shown);
  return h(
    'li',
    { key, class: className },
    h(
      'div',
      { class: 'line' },
      h('h3', {}, title),
      pill(...state),
      aside,
      h(
        'span',
        { class: 'push' },
        h('span', { class: 'number' }, share === undefined ? '–' : percent(share)),
      ),
    ),
    strip(series, `Availability of ${title}`, plotted, shown),
    ...more,
  );
}

/** Why the last check failed; nothing if it succeeded. */
export const failureText = (probe: ProbeStatus): Child =>
  probe.last && !probe.last.ok && h('p', { class: 'reason' }, reasonOf(probe));
