import { formatDuration } from '../../core/text-formats.ts';
import type { ProbeStatus, StatusReport, Verdict } from '../report.ts';
import { messageOf, sinceOf } from '../verdict/probe-text.ts';
import { bar, byteText, plain, progressText, type Screen, table, wrapped } from './io.ts';

export const ageOf = (since: string, nowMs: number) => {
  const seconds = Math.floor((nowMs - Date.parse(since)) / 1000);
  return seconds > 0 ? formatDuration(seconds * 1000) : '0s';
};

/** If the lag is larger than this, the agent is catching up, and a bar shows its progress. */
const catchingUpBytes = 10_000_000;

/** How much of a role's files has been read. */
function logText(files: StatusReport['logs'], screen: Screen): string {
  if (files.length === 0) return '-';
  const count = `${files.length} ${files.length === 1 ? 'file' : 'files'}`;
  const unread = files.find(({ state }) => state !== 'following');
  if (unread) return `${count}, ${unread.state}`;
  const lag = files.reduce((sum, { lagBytes }) => sum + lagBytes, 0);
  const text = `${count}, ${byteText(lag)} behind`;
  if (lag < catchingUpBytes) return text;
  const share = 1 - lag / files.reduce((sum, { offset, lagBytes }) => sum + offset + lagBytes, 0);
  return `${text} ${bar(share, 10, screen)} ${Math.floor(share * 100)}%`;
}

/** A table with one line for each role: its health, its own metrics, its log. Roles that fail come first, as probes do. */
export function rolesTable({ roles, probes, scrapes, statsd, logs }: StatusReport, screen: Screen): string[] {
  const all = roles.map((role) => ({
    role,
    health: probes.find(({ name }) => name === `health/${role}`),
    scrape: scrapes.find(({ service }) => service === role),
  }));
  const isFailing = ({ health, scrape }: (typeof all)[number]) =>
    health?.last?.ok === false || scrape?.up === false;
  all.sort((a, b) => Number(isFailing(b)) - Number(isFailing(a)));
  const rows = all.map(({ role, health, scrape }) => {
    const datagrams = statsd.find(({ service }) => service === role);
    const files = logs.filter(({ services }) => services.includes(role));
    return [
      role,
      health ? (health.state ?? 'not known yet') : '-',
      scrape
        ? scrape.up
          ? `${scrape.page?.series ?? 0} series`
          : `down: ${scrape.lastFailure?.reason ?? 'not scraped yet'}`
        : datagrams
          ? `${datagrams.lines} lines`
          : '-',
      logText(files, screen),
    ];
  });
  if (rows.length === 0) return [];
  return table(['ROLE', 'HEALTH', 'METRICS', 'LOG'], rows, screen).trimEnd().split('\n');
}

/** If the terminal is narrower than this, a line for a probe has no room for the finding. */
const narrowColumns = 60;

/** A table with one line for each probe, except the probes of the roles' health. */
export function probesTable({ probes, verdict }: StatusReport, nowMs: number, screen: Screen): string[] {
  const isFailing = ({ last }: ProbeStatus) => last?.ok === false;
  const rows = probes
    .filter(({ kind }) => kind !== 'health')
    // Failing probes come first, so that they are on the screen, however short it is.
    .sort((a, b) => Number(isFailing(b)) - Number(isFailing(a)))
    .map((probe) => [
      probe.name,
      stateOf(probe),
      stateAge(probe, verdict, nowMs),
      probe.last ? `${Math.round(probe.last.durationMs)} ms` : '-',
      probe.progress ? `verifying ${progressText(probe.progress, screen)}` : messageOf(probe.last?.msg ?? ''),
    ]);
  if (rows.length === 0) return [];
  const head = ['PROBE', 'STATE', 'FOR', 'TOOK', 'WHAT'];
  // The name identifies the probe, and the problem is shown above; a narrow terminal has no room for the rest.
  const shown = (screen.size()?.columns ?? Infinity) < narrowColumns ? 3 : head.length;
  const cells = rows.map((row) => row.slice(0, shown));
  return table(head.slice(0, shown), cells, screen).trimEnd().split('\n');
}

function stateOf({ last, state, flapping }: ProbeStatus): string {
  if (flapping) return 'flapping';
  if (last && !last.ok) return last.reason ?? 'failed';
  return state ?? 'not known yet';
}

/** How long the displayed state has lasted. A failure that is not an outage yet began later than the state behind it. */
function stateAge(probe: ProbeStatus, { problems }: Verdict, nowMs: number): string {
  const { failingSince, state, last } = probe;
  const isFailing = last && !last.ok && state !== 'down';
  const shown = isFailing ? (failingSince ?? last.at) : sinceOf(probe, problems);
  return shown === undefined ? '-' : ageOf(shown, nowMs);
}

/** The lines about the agent itself. */
export function agentLines(report: StatusReport, columns: number): string[] {
  const { version, instance, startedAt, state, config, listeners, series, drops, refused, health } = report;
  const nowMs = Date.parse(report.now);
  const sum = (rows: readonly { count: number }[]) => rows.reduce((total, { count }) => total + count, 0);
  const address = listeners.map(
    ({ listener, address: where, tls }) => `${listener} ${tls ? 'https' : 'http'}://${where}/`,
  );
  const lines = [
    `svc-agent ${version} on ${instance}, up ${ageOf(startedAt, nowMs)}: ${health.msg}${report.ready ? ', ready' : ', not ready'}`,
    [
      `configuration ${config.lastReloadSuccessful ? 'as on disk' : 'NOT as on disk'} (${config.files.join(', ')})`,
      `state ${state.degraded === undefined ? `saved in ${state.directory}` : `NOT saved (${state.degraded}: ${state.error})`}`,
    ].join('; '),
    [
      `${series.total} series, ${sum(drops)} dropped, ${sum(refused)} refused`,
      ...(report.conflicts.length > 0 ? [`${report.conflicts.length} conflicts`] : []),
      ...address,
    ].join('; '),
  ];
  return lines.flatMap((line) => wrapped(plain(line), columns));
}
