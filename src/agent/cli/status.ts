import { AgentError, errorText } from '../../core/errors.ts';
import type { StatusReport } from '../admin/status.ts';
import { ask, shownUrl, targetOf, targetOptions, targetUsage } from './agent-client.ts';
import { parseCommand } from './arguments.ts';
import { type Io, type Screen, table } from './io.ts';

const usage = `Usage: svc-agent status [-c FILE] [--json] [--url URL [--ca FILE | --insecure]]

Shows what a running agent is doing: what it follows, what it dropped and why, and whether its state is safe.
${targetUsage}`;

/** `svc-agent status`: `/api/status` of a running agent, as a table or as it is. */
export async function status(args: readonly string[], io: Io): Promise<number> {
  const { values } = parseCommand('status', args, targetOptions);
  if (values.help) {
    io.stdout(usage);
    return 0;
  }
  const target = await targetOf(values, '/api/status', io);
  const report = (await ask(target).catch((cause: unknown) => {
    const fault = {
      where: shownUrl(target.url),
      what: `no answer, ${errorText(cause)}`,
      allowed: 'is the agent running, and is admin.listenAddress right?',
    };
    throw new AgentError('internal', fault, cause);
  })) as StatusReport;
  io.stdout(values.json ? `${JSON.stringify(report)}\n` : readable(report, io.screen));
  return report.health.ok ? 0 : 1;
}

function readable(report: StatusReport, screen: Screen): string {
  const state = report.state.degraded
    ? `DEGRADED (${report.state.degraded}); counts go on from memory`
    : `safe in ${report.state.directory}, commit ${report.state.sequence}`;
  const reload = report.config.lastReloadSuccessful
    ? 'as on disk'
    : `NOT as on disk: ${report.config.lastReloadError}`;
  const facts = [
    `svc-agent ${report.version} on Node ${report.node}, ${report.instance}, since ${report.startedAt}`,
    `health         ${report.health.msg}${report.ready ? ', ready' : ', not ready'}`,
    `roles          ${report.roles.join(', ') || 'none'}`,
    `configuration  ${reload} (${report.config.files.join(', ')})`,
    `state          ${state}`,
    ...report.listeners.map(
      ({ listener, address, tls }) => `${listener.padEnd(14)} ${tls ? 'https' : 'http'}://${address}/`,
    ),
    `series         ${report.series.total}`,
    '',
  ];
  const sections: (readonly [string, readonly string[], readonly (readonly (string | number)[])[]])[] = [
    [
      'Log files',
      ['SERVICE', 'STATE', 'OFFSET', 'LAG', 'FILE'],
      report.logs.map((f) => [f.services.join(','), f.state, f.offset, f.lagBytes, f.path]),
    ],
    [
      'Pages of the roles',
      ['SERVICE', 'STATE', 'SERIES', 'URL'],
      report.scrapes.map((s) => [
        s.service,
        s.up ? 'up' : `down: ${s.lastFailure?.what ?? 'no page yet'}`,
        s.page?.series ?? 0,
        s.url,
      ]),
    ],
    [
      'Datagrams',
      ['SERVICE', 'DATAGRAMS', 'LINES', 'ADDRESSES'],
      report.statsd.map((s) => [s.service, s.datagrams, s.lines, Object.values(s.addresses).join(', ')]),
    ],
    ['Dropped', ['COMPONENT', 'REASON', 'COUNT'], report.drops.map((d) => [d.component, d.reason, d.count])],
    [
      'Refused series',
      ['FAMILY', 'REASON', 'COUNT'],
      report.refused.map((r) => [r.family, r.reason, r.count]),
    ],
    ['Conflicts', ['WHAT'], report.conflicts.map((c) => [c])],
  ];
  const tables = sections
    .filter(([, , rows]) => rows.length > 0)
    .map(([title, head, rows]) => `${title}\n${table(head, rows, screen)}`);
  return [...facts, ...tables].join('\n');
}
