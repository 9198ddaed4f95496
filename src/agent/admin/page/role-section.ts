import type { ProbeStatus, StatusReport } from '../../report.ts';
import { reasonOf, subjectOf } from '../../verdict/probe-text.ts';
import type { Data } from './data.ts';
import { type Child, h } from './dom.ts';
import { count, seconds } from './format.ts';
import { type Frame, folded, note, section, type Tone } from './parts.ts';
import { axis, probesOf, sinceText, stateOf, targetItem } from './targets.ts';

type ScrapeReport = StatusReport['scrapes'][number];

/** Up to this many roles are not folded, and are shown whatever the filter is. */
const mostRoles = 12;

/**
 * The section on roles: each with its availability, its health, and what was scraped and received from it. If there are many,
 * those that fail come first.
 */
export function roles(data: Data, report: StatusReport, frame: Frame): Child {
  const health = new Map(probesOf(report, 'health').map((probe) => [subjectOf(probe), probe]));
  const scrapes = new Map(report.scrapes.map((scrape) => [scrape.service, scrape]));
  const datagrams = new Map(report.statsd.map((one) => [one.service, one.datagrams]));
  const names = new Set([...report.roles, ...health.keys(), ...scrapes.keys(), ...datagrams.keys()]);
  if (names.size === 0) return undefined;
  const isMany = names.size > mostRoles;
  const shown = [...names]
    .map((name) => {
      const probe = health.get(name);
      const scrape = scrapes.get(name);
      const state = probe ? stateOf(probe) : scrapeState(scrape);
      return { name, probe, scrape, state, isWrong: state[0] === 'bad' || state[0] === 'warn' };
    })
    .filter(({ name }) => !isMany || frame.takes(name));
  if (isMany) shown.sort((one, other) => Number(other.isWrong) - Number(one.isWrong));
  const item = ({ name, probe, scrape, state }: (typeof shown)[number]) => {
    const target = {
      key: name,
      title: name,
      state,
      aside: sinceText(probe, data, frame),
      series: probe ? `${probe.name}/up` : `scrape/${name}/up`,
    };
    const restarts = report.restarts[name] ?? 0;
    return targetItem(target, data, frame, activity(probe, scrape, datagrams.get(name), restarts));
  };
  return section(
    { id: 'roles', title: 'Roles', aside: axis(frame) },
    shown.length === 0 && note('No name of a role contains this text.'),
    folded(
      { key: 'more-roles', most: mostRoles, noun: 'roles', isWrong: ({ isWrong }) => isWrong },
      shown,
      (part) => h('ul', { class: 'targets' }, part.map(item)),
    ),
  );
}

/** The state of a role without a health check: whether it can be scraped. */
function scrapeState(scrape: ScrapeReport | undefined): [Tone, string] {
  if (!scrape) return ['quiet', 'not checked'];
  if (scrape.up) return ['good', 'up'];
  return scrape.lastFailure ? ['bad', 'down'] : ['quiet', 'not scraped yet'];
}

function activity(
  probe: ProbeStatus | undefined,
  scrape: ScrapeReport | undefined,
  datagrams: number | undefined,
  restarts: number,
): HTMLElement {
  const health =
    probe?.last && (probe.last.ok ? `answers in ${seconds(probe.last.durationMs / 1e3)}` : reasonOf(probe));
  const series =
    scrape &&
    (scrape.up
      ? `${count(scrape.page?.series ?? 0)} series scraped`
      : `no metrics: ${scrape.lastFailure?.what ?? 'no page yet'}`);
  const texts = [
    health,
    series,
    datagrams !== undefined && `${count(datagrams)} datagrams`,
    restarts > 0 && `${count(restarts)} ${restarts === 1 ? 'restart' : 'restarts'} seen`,
  ];
  return h(
    'div',
    { class: 'line small' },
    texts.map((text) => text !== undefined && text !== false && h('span', {}, text)),
  );
}
