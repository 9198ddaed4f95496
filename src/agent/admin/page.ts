import type { StatusReport } from './status.ts';

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const html = (text: string | number) => String(text).replace(/[&<>"']/g, (character) => escapes[character]!);

const style = `
:root { color-scheme: light dark; --line: #8884; --good: #2a7d2a; --bad: #c0392b; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); }
td.number { text-align: right; font-variant-numeric: tabular-nums; } td.path { word-break: break-all; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
`;

type Cell = string | number;

function rowsOf(
  title: string,
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  empty: string,
): string {
  if (rows.length === 0) return `<h2>${html(title)}</h2><p>${html(empty)}</p>`;
  const cell = (value: Cell) =>
    `<td${typeof value === 'number' ? ' class="number"' : ''}>${html(value)}</td>`;
  const body = rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`).join('\n');
  return `<h2>${html(title)}</h2><table><tr>${head.map((h) => `<th>${html(h)}</th>`).join('')}</tr>\n${body}</table>`;
}

const mark = (good: boolean, text: string) => `<span class="${good ? 'good' : 'bad'}">${html(text)}</span>`;

function facts(report: StatusReport): string {
  const { state, config } = report;
  const rows: readonly [string, string][] = [
    ['health', mark(report.health.ok, report.health.msg)],
    ['ready', mark(report.ready, report.ready ? 'yes' : 'not yet')],
    ['roles', html(report.roles.join(', ') || 'none')],
    [
      'configuration',
      mark(
        config.lastReloadSuccessful,
        config.lastReloadSuccessful ? 'as on disk' : `not as on disk: ${config.lastReloadError}`,
      ),
    ],
    ['files', html(config.files.join(', '))],
    [
      'state',
      mark(
        !state.degraded,
        state.degraded
          ? `cannot be written (${state.degraded}); counts go on from memory`
          : `safe, commit ${state.sequence}`,
      ),
    ],
    ['directory', html(state.directory)],
    [
      'listeners',
      report.listeners.map(({ listener, address }) => `${html(listener)} ${html(address)}`).join(', '),
    ],
    ['since', html(report.startedAt)],
  ];
  return `<table>${rows.map(([name, value]) => `<tr><th>${name}</th><td class="path">${value}</td></tr>`).join('\n')}</table>`;
}

function probesTable({ probes }: StatusReport): string {
  const head = ['probe', 'state', 'since', 'took', 'what', 'target'];
  const rows = probes.map(({ name, state, since, flapping, last, target }) => [
    name,
    `${state ?? 'not known yet'}${flapping ? ', flapping' : ''}`,
    since ?? '',
    last ? `${Math.round(last.durationMs)} ms` : '',
    last ? [last.reason, last.msg].filter(Boolean).join(': ') : 'not run yet',
    target,
  ]);
  return `${rowsOf('Probes', head, rows, 'nothing is probed')}<p><a href="probes">all that they found</a></p>`;
}

/** The status page: `/api/status` for people. It reloads itself every 10 s and needs no script. */
export function statusPage(report: StatusReport): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="10">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc-agent ${html(report.instance)}</title><style>${style}</style></head><body>
<h1>svc-agent ${html(report.version)} on ${html(report.instance)}</h1>
${facts(report)}
${rowsOf(
  'Log files',
  ['service', 'state', 'offset', 'lag', 'file'],
  report.logs.map((f) => [f.services.join(', '), f.state, f.offset, f.lagBytes, f.path]),
  'none followed',
)}
${rowsOf(
  'Pages of the roles',
  ['service', 'state', 'series', 'vocabulary', 'url'],
  report.scrapes.map((s) => [
    s.service,
    s.up ? 'up' : `down: ${s.lastFailure?.what ?? 'no page yet'}`,
    s.page?.series ?? 0,
    s.vocabulary ?? 'none',
    s.url,
  ]),
  'none scraped',
)}
${rowsOf(
  'Datagrams',
  ['service', 'addresses', 'datagrams', 'lines', 'known lines'],
  report.statsd.map((s) => [
    s.service,
    Object.values(s.addresses).join(', '),
    s.datagrams,
    s.lines,
    s.knownLines,
  ]),
  'none received',
)}
${probesTable(report)}
${rowsOf(
  'Dropped',
  ['component', 'reason', 'count'],
  report.drops.map((d) => [d.component, d.reason, d.count]),
  'nothing',
)}
${rowsOf(
  'Refused series',
  ['family', 'reason', 'count'],
  report.refused.map((r) => [r.family, r.reason, r.count]),
  'none',
)}
${rowsOf(
  'Names that met',
  ['what'],
  report.conflicts.map((c) => [c]),
  'none',
)}
${rowsOf(
  `Series (${report.series.total})`,
  ['family', 'series'],
  report.series.families.map((f) => [f.family, f.series]),
  'none',
)}
<p><a href="api/status">as JSON</a> · <a href="metrics">the agent’s own metrics</a></p>
</body></html>
`;
}
