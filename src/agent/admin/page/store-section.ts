import type { ProbeStatus, StatusReport } from '../../report.ts';
import { subjectOf } from '../../verdict/probe-text.ts';
import type { Data } from './data.ts';
import { type Child, h } from './dom.ts';
import { count, seconds } from './format.ts';
import { type Frame, facts, folded, meter, note, pill, section } from './parts.ts';
import { plot } from './plots.ts';
import { axis, failureText, probesOf, sinceText, stateOf, targetItem } from './targets.ts';

/** Up to this many databases are shown with all that is known about them. */
const mostWhole = 6;
/**
 * If there are more, this many stores and the failing ones are shown outside of a fold; for a healthy store only its state is
 * shown.
 */
const mostStores = 4;

/** The section on databases, each with its latency and the checks of its settings; failing ones come first. */
export function stores(data: Data, report: StatusReport, frame: Frame): Child {
  const all = probesOf(report, 'store');
  if (all.length === 0) return undefined;
  const probes = all
    .filter((probe) => frame.takes(subjectOf(probe)))
    .sort((one, other) => rankOf(one) - rankOf(other));
  const isWide = all.length > 1;
  const isMany = all.length > mostWhole;
  return section(
    { id: 'stores', title: 'Stores', aside: axis(frame), wide: isWide },
    probes.length === 0 && note('No name of a store contains this text.'),
    folded(
      { key: 'more-stores', most: isMany ? mostStores : mostWhole, noun: 'databases', isWrong },
      probes,
      (part) =>
        h(
          'ul',
          { class: `targets${isWide ? ' columns' : ''}` },
          part.map((probe) => storeItem(probe, isMany, data, frame)),
        ),
    ),
  );
}

const checksOf = ({ last }: ProbeStatus) => (last?.details?.checks ?? []) as readonly ShownCheck[];
const isFailing = ({ holds, accepted }: ShownCheck): boolean => holds === false && accepted === undefined;

/** The rank of a database: 0 if it fails, 1 if its settings need attention, otherwise 2. */
function rankOf(probe: ProbeStatus): number {
  if (probe.last?.ok === false) return 0;
  return checksOf(probe).some((check) => isFailing(check) && check.severity !== 'advice') ? 1 : 2;
}
const isWrong = (probe: ProbeStatus): boolean => rankOf(probe) < 2;

/** The item for a database. `isBrief`: its healthy parts are folded. */
function storeItem(probe: ProbeStatus, isBrief: boolean, data: Data, frame: Frame): HTMLElement {
  const { name } = probe;
  const details = (probe.last?.details ?? {}) as Record<string, unknown>;
  const target = {
    key: name,
    title: subjectOf(probe),
    state: stateOf(probe),
    aside: sinceText(probe, data, frame),
    series: `${name}/up`,
    className: 'target store',
  };
  const { failing, others } = settingsChecks(name, checksOf(probe));
  const known = [
    facts(
      ['Address', h('code', {}, probe.target)],
      details.server !== undefined && ['Server', String(details.server)],
      details.schema !== undefined && details.schema !== null && ['Schema', String(details.schema)],
      connections(details),
    ),
    plot(
      {
        id: `${name}/seconds`,
        title: 'Check duration',
        text: seconds,
        least: 0.01,
        lines: [{ series: `${name}/seconds`, label: 'duration', colour: '--c1' }],
      },
      data.plotted,
      frame.shown,
    ),
  ];
  const more = isBrief
    ? [failing, h('details', { key: `${name} details`, class: 'more' }, detailsSummary(name), known, others)]
    : [known, failing, others];
  return targetItem(target, data, frame, failureText(probe), ...more);
}

const detailsSummary = (name: string): HTMLElement =>
  h('summary', {}, 'Details', h('span', { class: 'hidden' }, ` of ${name}`));

function connections(details: Readonly<Record<string, unknown>>): readonly [string, Child] | false {
  const most = Number(details.connectionsMax);
  if (!(most > 0)) return false;
  const byState = (details.connections ?? {}) as Record<string, number>;
  const open = Object.values(byState).reduce((sum, n) => sum + n, 0);
  const tone = open / most >= 0.9 ? 'bad' : 'quiet';
  return ['Connections', meter(open / most, `${count(open)} of ${count(most)}`, tone)];
}

interface ShownCheck {
  check: string;
  holds: boolean | 'unknown';
  found: string;
  severity: 'data_at_risk' | 'recovery_weak' | 'advice';
  accepted?: string;
  why?: string;
  set?: string;
  restart?: boolean;
}

const severityText = {
  data_at_risk: 'data at risk',
  recovery_weak: 'recovery is weak',
  advice: 'advice',
} as const;
const severityTone = { data_at_risk: 'bad', recovery_weak: 'warn', advice: 'quiet' } as const;

function checkItem({ check, found, severity, why, set, restart }: ShownCheck): HTMLElement {
  return h(
    'li',
    { key: check, class: 'check' },
    h(
      'div',
      { class: 'line' },
      pill(severityTone[severity], severityText[severity]),
      h('strong', {}, check.replaceAll('_', ' ')),
      h('span', { class: 'muted' }, found),
    ),
    why && h('p', {}, why),
    set &&
      h(
        'p',
        { class: 'fix' },
        h('span', { class: 'muted' }, 'Set '),
        h('code', {}, set),
        restart === true && h('span', { class: 'muted' }, ' (needs a restart)'),
      ),
  );
}

/** The failing checks, the most severe first; the others are folded by outcome. */
function settingsChecks(name: string, checks: readonly ShownCheck[]): Record<'failing' | 'others', Child> {
  const rank = { data_at_risk: 0, recovery_weak: 1, advice: 2 } as const;
  const failing = checks.filter(isFailing);
  failing.sort((a, b) => rank[a.severity] - rank[b.severity]);
  const accepted = checks.filter((check) => check.holds === false && check.accepted !== undefined);
  const passing = checks.filter(({ holds }) => holds === true);
  const unknown = checks.filter(({ holds }) => holds === 'unknown');
  const others = [
    foldedChecks(
      `${name} hold`,
      passing,
      (checks) => `${checks} passed`,
      ({ found }) => found,
    ),
    foldedChecks(
      `${name} unknown`,
      unknown,
      (checks) => `${checks} without a result`,
      ({ found }) => found,
    ),
    foldedChecks(
      `${name} accepted`,
      accepted,
      (checks) => `${checks.replace('check', 'failing check')}, accepted by you`,
      ({ found, accepted: reason }) => `${found} (accepted: ${reason})`,
    ),
  ];
  return {
    failing: failing.length > 0 && h('ul', { class: 'checks' }, failing.map(checkItem)),
    others,
  };
}

function foldedChecks(
  key: string,
  checks: readonly ShownCheck[],
  summary: (checks: string) => string,
  text: (check: ShownCheck) => string,
): Child {
  if (checks.length === 0) return undefined;
  const items = checks.map((check) =>
    h(
      'li',
      {},
      h('strong', {}, check.check.replaceAll('_', ' ')),
      ' ',
      h('span', { class: 'muted' }, text(check)),
    ),
  );
  const number = checks.length === 1 ? '1 check' : `${checks.length} checks`;
  return h(
    'details',
    { key, class: 'more' },
    h('summary', {}, summary(number)),
    h('ul', { class: 'plainlist' }, items),
  );
}
