import { formatDuration } from '../../core/text-formats.ts';
import { changeText, type Incident, type Problem, type StatusReport } from '../report.ts';
import { incidentsIn } from '../verdict/alike.ts';
import { targetOf, targetOptions, targetUsage } from './agent-client.ts';
import { command } from './arguments.ts';
import { plain, table } from './io.ts';
import { askStatus } from './status.ts';

const usage = `Usage: svc-agent incidents [-c FILE] [--json] [--url URL [--ca FILE | --insecure]]

Lists what is wrong now and what was wrong in the last 30 days, newest first: when it began, how long it lasted, its
cause, and what it took down.
${targetUsage}Exit status: 0 success; 1 the agent does not answer; 2 wrong usage or an invalid configuration.
`;

/** Runs `svc-agent incidents`: prints the problems that last and the incidents that are over, from a running agent. */
export const incidents = command({ name: 'incidents', usage, options: targetOptions }, async (values, io) => {
  const report = await askStatus(await targetOf(values, '/api/status', io));
  const lasting = incidentsIn(report.verdict);
  if (values.json) io.stdout(`${JSON.stringify({ lasting, incidents: report.incidents })}\n`);
  else if (lasting.length + report.incidents.length === 0) io.stdout('No incident in the last 30 days.\n');
  else io.stdout(table(['START', 'LASTED', 'SEVERITY', 'WHAT'], rowsOf(report, lasting), io.screen));
  return 0;
});

/** A time without its fraction of a second. */
const timeOf = (text: string): string => text.replace(/\.\d+Z$/, 'Z');

function whatOf({
  what,
  consequences,
  changes = [],
}: Pick<Incident, 'what' | 'consequences' | 'changes'>): string {
  const [change] = changes;
  return [what, consequences && `took down ${consequences}`, change && `after ${changeText(change)}`]
    .filter(Boolean)
    .join('; ');
}

function rowsOf({ incidents: over, now }: StatusReport, lasting: readonly Problem[]): string[][] {
  const lasted = (ms: number) => formatDuration(Math.max(0, Math.round(ms / 1e3)) * 1e3) || '0s';
  const lastedUntil = (since: string, at: string) => lasted(Date.parse(at) - Date.parse(since));
  return [
    ...lasting.map(({ since, unreadSince, severity, what, changes }) => [
      timeOf(since),
      unreadSince ? `at least ${lastedUntil(since, unreadSince)}` : `${lastedUntil(since, now)} so far`,
      severity,
      plain(whatOf({ what, changes })),
    ]),
    ...over.map(({ start, durationSeconds, severity, ...rest }) => [
      timeOf(start),
      lasted(durationSeconds * 1e3),
      severity,
      plain(whatOf(rest)),
    ]),
  ];
}
