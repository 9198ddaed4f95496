import { AgentError, errorText } from '../../core/errors.ts';
import { formatDuration, parseDuration } from '../../core/text-formats.ts';
import { createReadSecret } from '../read-secret.ts';
import { shownUrl, targetOf, targetOptions, targetUsage, tell } from './agent-client.ts';
import { configured, parseCommand, showHelp } from './arguments.ts';
import type { Io } from './io.ts';

const usage = `Usage: svc-agent maintenance --for TIME --reason TEXT [-c FILE] [--url URL [--ca FILE | --insecure]]

Announces planned work to the running agent: its status says so until the time is over, and svc_maintenance is 1, so
that alerts can be joined on it. It needs admin.events.token in the configuration.
      --for TIME     how long the work takes, such as 30m; at most 7d
      --reason TEXT  what is done, shown on the status page
${targetUsage}Exit status: 0 announced; 1 the agent did not take it; 2 wrong usage or an invalid configuration.
`;

/** Runs `svc-agent maintenance`: announces planned work by `POST /event`. */
export async function maintenance(args: readonly string[], io: Io): Promise<number> {
  const { values } = parseCommand('maintenance', args, {
    ...targetOptions,
    for: { type: 'string' },
    reason: { type: 'string' },
  });
  if (values.help) {
    showHelp('maintenance', usage, io);
    return 0;
  }
  const { for: time, reason } = values;
  if (time === undefined || reason === undefined) {
    const what = time === undefined ? 'option --for is missing' : 'option --reason is missing';
    throw new AgentError('usage', {
      where: 'svc-agent maintenance',
      what,
      allowed: 'see svc-agent maintenance --help',
    });
  }
  const lengthMs = lengthOf(time);
  const { config } = await configured(values, io);
  const token = config.admin?.events?.token;
  if (token === undefined) {
    const fault = { where: 'admin.events.token', what: 'missing, so nothing can be announced' };
    throw new AgentError('usage', { ...fault, allowed: 'set it to a secret' });
  }
  const target = await targetOf(values, '/event', io);
  const body = { kind: 'maintenance', text: reason, seconds: lengthMs / 1000 };
  const authorization = `Bearer ${(await createReadSecret(io.env)(token)).trim()}`;
  const { status, text } = await tell({ ...target, authorization }, body).catch((cause: unknown) => {
    const fault = { where: shownUrl(target.url), what: `no answer, ${errorText(cause)}` };
    throw new AgentError('internal', { ...fault, allowed: 'is the agent running?' }, cause);
  });
  if (status !== 200) {
    const fault = { where: shownUrl(target.url), what: `refused with HTTP ${status}, ${text.trim()}` };
    throw new AgentError('internal', fault);
  }
  const until = new Date(Date.now() + lengthMs).toISOString();
  io.stdout(
    values.json
      ? `${JSON.stringify({ until, reason })}\n`
      : `maintenance for ${formatDuration(lengthMs)}, until ${until}: ${reason}\n`,
  );
  return 0;
}

function lengthOf(time: string): number {
  try {
    const lengthMs = parseDuration(time);
    if (lengthMs >= 1000) return lengthMs;
  } catch {
    // The error is thrown below, as for a length that is too short.
  }
  const fault = { where: '--for', what: 'not a length of time', got: time };
  throw new AgentError('usage', { ...fault, allowed: 'use the form 30m or 2h' });
}
