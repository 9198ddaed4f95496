import { type StatusReport, severeEntries } from '../../report.ts';
import type { Data } from './data.ts';
import { type Child, h, table } from './dom.ts';
import { ago, bytes, count, moment, percent, perSecond, span } from './format.ts';
import { type Frame, facts, folded, meter, note, pill, section, type Tone } from './parts.ts';
import { binarySteps, type PlotLine, plot } from './plots.ts';

const levelColours: readonly [string, string][] = [
  ['fatal', '--c5'],
  ['error', '--c2'],
  ['warn', '--c3'],
  ['info', '--c1'],
  ['debug', '--c6'],
];
const mostFiles = 8;

/** The section on logs: rates by level, loggers with most errors, the last errors, and the files. */
export function logs(data: Data, { entries, logs: files }: StatusReport, { nowMs, shown }: Frame): Child {
  if (files.length === 0 && entries.services.length === 0) return undefined;
  const lines = levelColours
    .filter(([level]) => data.plotted.series.has(`log/${level}`))
    .map(([level, colour]): PlotLine => ({ series: `log/${level}`, label: level, colour }));
  const rates = { id: 'log-rate', title: 'Entries by level', text: perSecond, least: 1, lines };
  return section(
    {
      id: 'logs',
      title: 'Logs',
      wide: true,
      aside: h('span', { class: 'muted' }, `${count(files.length)} ${files.length === 1 ? 'file' : 'files'}`),
    },
    h(
      'div',
      { class: 'split' },
      h(
        'div',
        {},
        lines.length > 0 ? plot(rates, data.plotted, shown) : note('No entries yet.'),
        loggerTable(entries),
      ),
      h('div', {}, h('h3', {}, 'Last errors'), lastErrors(entries, nowMs)),
    ),
    fileTable(files),
  );
}

function loggerTable({ loggers, loggerCount }: StatusReport['entries']): Child {
  const rows = loggers.slice(0, 10).map(({ service, logger, levels }) => ({
    key: `${service} ${logger}`,
    cells: [
      h('strong', {}, logger),
      service,
      h('span', { class: 'number' }, count(severeEntries(levels))),
      h('span', { class: 'number' }, count(Object.values(levels).reduce((sum, n) => sum + n, 0))),
    ],
  }));
  if (rows.length === 0) return undefined;
  const title =
    loggerCount > rows.length ? `Loggers with the most errors (of ${count(loggerCount)})` : 'Loggers';
  return [h('h3', {}, title), table('Loggers', ['Logger', 'Role', 'Errors', 'Entries'], rows)];
}

type LastError = StatusReport['entries']['lastErrors'][number];

/** Equal errors, with their number and their first and last time, newest first. */
function groupedErrors(
  entries: readonly LastError[],
): { last: LastError; first: LastError; times: number }[] {
  const groups = new Map<string, { last: LastError; first: LastError; times: number }>();
  for (const entry of entries) {
    const key = JSON.stringify([entry.service, entry.level, entry.logger, entry.msg]);
    const known = groups.get(key);
    if (known) {
      known.first = entry;
      known.times++;
    } else groups.set(key, { last: entry, first: entry, times: 1 });
  }
  return [...groups.values()];
}

function lastErrors({ lastErrors: entries }: StatusReport['entries'], nowMs: number): Child {
  if (entries.length === 0) return note('None since the agent started.');
  const item = ({
    last: { at, service, level, logger, msg },
    first,
    times,
  }: ReturnType<typeof groupedErrors>[0]) =>
    h(
      'li',
      { key: `${service} ${level} ${logger} ${msg}`, class: 'entry' },
      h(
        'div',
        { class: 'line small' },
        pill(level === 'fatal' ? 'bad' : 'warn', level),
        h('span', {}, service),
        logger !== '' && h('span', { class: 'muted' }, logger),
        times > 1 && h('span', { class: 'muted' }, `${count(times)} times, first ${moment(first.at, nowMs)}`),
        h('time', { class: 'push muted', datetime: at }, moment(at, nowMs)),
      ),
      h('p', { class: 'msg' }, msg || '(no message)'),
    );
  return folded({ key: 'more-errors', most: 6 }, groupedErrors(entries), (part) =>
    h('ol', { class: 'entries' }, part.map(item)),
  );
}

/** A table of the files: those that are not followed and those with the largest lag come first. */
function fileTable(files: StatusReport['logs']): Child {
  const head = ['File', 'Roles', 'State', 'Lag', 'Read'];
  const row = ({ path, services, state, lagBytes, offset }: StatusReport['logs'][number]) => ({
    key: path,
    cells: [
      h('code', {}, path),
      services.join(', '),
      pill(state === 'following' ? 'good' : 'warn', state),
      h('span', { class: 'number' }, lagBytes === 0 ? 'none' : bytes(lagBytes)),
      h('span', { class: 'number' }, bytes(offset)),
    ],
  });
  const inOrder = [...files].sort(
    (a, b) => Number(a.state === 'following') - Number(b.state === 'following') || b.lagBytes - a.lagBytes,
  );
  if (files.length === 0) return undefined;
  return h(
    'details',
    { key: 'files', class: 'more' },
    h('summary', {}, 'Files'),
    folded({ key: 'more-files', most: mostFiles, noun: 'files' }, inOrder, (part, isRest) =>
      table(isRest ? 'More files' : 'Files', head, part.map(row)),
    ),
  );
}

/** The section on where series are sent, and how full the queue is. */
export function delivery(data: Data, { reporters, listeners }: StatusReport, { nowMs, shown }: Frame): Child {
  const pull = listeners.filter(({ listener }) => !/^admin(\.|$)/.test(listener));
  const items = reporters.map(
    ({ block, kind, target, lastSuccess, lastFailure, failingSince, failures, queueBytes, queueOldest }) => {
      const state: [Tone, string] = failingSince
        ? ['bad', 'failing']
        : lastSuccess
          ? ['good', 'delivers']
          : ['quiet', 'nothing sent yet'];
      return h(
        'li',
        { key: `${block} ${kind}`, class: 'target' },
        h('div', { class: 'line' }, h('h3', {}, `${block}.${kind}`), pill(...state)),
        facts(
          ['To', h('code', {}, target)],
          ['Last delivery', ago(lastSuccess, nowMs)],
          lastFailure && [
            'Last failure',
            `${lastFailure.reason.replaceAll('_', ' ')}, ${ago(lastFailure.at, nowMs)} (${count(failures)} in all): ${lastFailure.what}`,
          ],
          queueBytes !== undefined && [
            'Queue',
            queueBytes === 0 ? 'empty' : `${bytes(queueBytes)}, oldest ${ago(queueOldest, nowMs)}`,
          ],
        ),
        queueBytes !== undefined &&
          plot(
            {
              id: `queue/${block}`,
              title: 'Queue',
              text: bytes,
              steps: binarySteps,
              least: 65_536,
              lines: [{ series: `queue/${block}`, label: 'queued', colour: '--c1' }],
            },
            data.plotted,
            shown,
          ),
      );
    },
  );
  return section(
    { id: 'delivery', title: 'Reporters' },
    pull.length > 0 &&
      h(
        'ul',
        { class: 'targets' },
        pull.map(({ listener, address, tls }) =>
          h(
            'li',
            { key: listener, class: 'target' },
            h('div', { class: 'line' }, h('h3', {}, listener), pill('good', 'serves')),
            facts(['Scrape', h('code', {}, `${tls ? 'https' : 'http'}://${address}/metrics`)]),
          ),
        ),
      ),
    items.length > 0 && h('ul', { class: 'targets' }, items),
    pull.length + items.length === 0 &&
      note('No reporter is configured: series are served on this listener only.'),
  );
}

/** The section on series by family against the limit, and on what was refused or dropped. */
export function cardinality(
  _data: Data,
  { series, refused, refusals, conflicts, drops }: StatusReport,
  { nowMs }: Frame,
): Child {
  const largest = Math.max(1, ...series.families.map((family) => family.series));
  const share = series.total / series.limit;
  const refusedRows = [...refused]
    .sort((a, b) => b.count - a.count)
    .slice(0, 12)
    .map(({ family, reason, count: n }) => ({
      key: `${family} ${reason}`,
      cells: [h('code', {}, family), reason.replaceAll('_', ' '), h('span', { class: 'number' }, count(n))],
    }));
  const dropRows = [...drops]
    .sort((a, b) => b.count - a.count)
    .map(({ component, reason, count: n }) => ({
      key: `${component} ${reason}`,
      cells: [component, reason.replaceAll('_', ' '), h('span', { class: 'number' }, count(n))],
    }));
  const families = series.families.filter((family) => family.series > 0);
  const familyItem = ({ family, series: n }: (typeof families)[number]) =>
    h('li', { key: family }, h('code', {}, family), meter(n / largest, count(n)));
  return section(
    {
      id: 'cardinality',
      title: 'Cardinality',
      aside: meter(
        share,
        `${count(series.total)} of ${count(series.limit)} series`,
        share > 0.9 ? 'bad' : 'quiet',
      ),
    },
    h('h3', {}, 'Largest families'),
    families.length > 0
      ? folded({ key: 'families', most: 8 }, families, (part) =>
          h('ul', { class: 'bars' }, part.map(familyItem)),
        )
      : note('No series yet.'),
    h('h3', {}, 'Refused series'),
    refusedRows.length > 0
      ? table('Refused series', ['Family', 'Why', 'Series'], refusedRows)
      : note('None.'),
    refusals.length > 0 &&
      h(
        'details',
        { key: 'refusals', class: 'more' },
        h('summary', {}, 'Newest refusals'),
        h(
          'ul',
          { class: 'plainlist' },
          refusals.map(({ family, labels, service, reason, at }, i) =>
            h(
              'li',
              { key: `${i}` },
              h('code', {}, `${family}{${labels}}`),
              h(
                'span',
                { class: 'muted' },
                ` ${[service, reason.replaceAll('_', ' ')].filter(Boolean).join(', ')}, ${moment(at, nowMs)}`,
              ),
            ),
          ),
        ),
      ),
    conflicts.length > 0 && [
      h('h3', {}, 'Names in conflict'),
      h(
        'ul',
        { class: 'plainlist' },
        conflicts.map((conflict) => h('li', { key: conflict }, conflict)),
      ),
    ],
    h('h3', {}, 'Dropped'),
    dropRows.length > 0 ? table('Dropped', ['Where', 'Why', 'Count'], dropRows) : note('Nothing.'),
  );
}

/** The section on the agent's own process. */
export function self(data: Data, report: StatusReport, { nowMs, shown }: Frame): Child {
  const { version, node, startedAt, config, state, listeners, process: own } = report;
  return section(
    { id: 'agent', title: 'Agent' },
    facts(
      ['Version', `${version} on Node ${node}`],
      ['Running', `${span((nowMs - Date.parse(startedAt)) / 1e3)}, since ${moment(startedAt, nowMs)}`],
      [
        'Configuration',
        config.lastReloadSuccessful
          ? pill('good', 'as on disk')
          : [pill('bad', 'refused'), h('div', { class: 'reason' }, config.lastReloadError)],
      ],
      [
        'State',
        state.degraded
          ? pill('bad', `cannot be written: ${state.error}`)
          : [pill('good', 'safe'), h('span', { class: 'muted' }, ` commit ${count(state.sequence)}`)],
      ],
      ['Memory', bytes(own.rssBytes)],
    ),
    h(
      'div',
      { class: 'pair' },
      plot(
        {
          id: 'cpu',
          title: 'CPU, share of one core',
          text: percent,
          least: 0.02,
          lines: [{ series: 'agent/cpu', label: 'CPU', colour: '--c1' }],
        },
        data.plotted,
        shown,
      ),
      plot(
        {
          id: 'rss',
          title: 'Resident memory',
          text: bytes,
          steps: binarySteps,
          least: 64 << 20,
          lines: [{ series: 'agent/rss', label: 'memory', colour: '--c4' }],
        },
        data.plotted,
        shown,
      ),
    ),
    h(
      'details',
      { key: 'places', class: 'more' },
      h('summary', {}, 'Files and listeners'),
      facts(
        ['State', h('code', {}, state.directory)],
        ...config.files.map((file) => ['File', h('code', {}, file)] as const),
        ...listeners.map(
          ({ listener, address, tls }) =>
            [listener, h('code', {}, `${tls ? 'https' : 'http'}://${address}`)] as const,
        ),
      ),
    ),
  );
}
