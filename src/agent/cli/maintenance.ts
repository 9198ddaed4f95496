import { AgentError, errorText, usageError } from '../../core/errors.ts';
import { formatDuration, isHeaderText, parseDuration } from '../../core/text-formats.ts';
import { longestMaintenanceSeconds, longestText } from '../admin/announcements.ts';
import { createReadSecret } from '../read-secret.ts';
import { type AgentTarget, targetOf, targetOptions, targetText, targetUsage, tell } from './agent-client.ts';
import { command, configured, type ValuesOf } from './arguments.ts';
import type { Io } from './io.ts';

const usage = `Usage: svc-agent maintenance --for TIME --reason TEXT | --end [--reason TEXT]
         [-c FILE] [--token-file FILE] [--url URL [--ca FILE | --insecure]]

Announces planned work to the running agent. Until the work is over, the status says so and svc_maintenance is 1, which
alert rules can test. The command needs admin.events.token, from the configuration or --token-file.
      --for TIME         how long the work takes, such as 30m; at most 7d
      --reason TEXT      what the work is, shown on the status page; at most 200 characters
      --end              ends all announced work now; weekly windows of the configuration continue
      --token-file FILE  file with the token, instead of the configured one
${targetUsage}Exit status: 0 announced; 1 the agent did not accept it; 2 wrong usage or an invalid configuration.
`;

const options = {
  ...targetOptions,
  for: { type: 'string' },
  reason: { type: 'string' },
  end: { type: 'boolean' },
  'token-file': { type: 'string' },
} as const;
type Values = ValuesOf<typeof options>;

/** Work to announce. It lasts no time if it announces the end of other work. */
interface Work {
  lengthMs: number;
  reason: string;
}

/** Runs `svc-agent maintenance`: announces planned work, or its end, by `POST /event`. */
export const maintenance = command({ name: 'maintenance', usage, options }, async (values, io) => {
  const { lengthMs, reason } = workOf(values);
  const authorization = `Bearer ${await tokenOf(values, io)}`;
  const target = await targetOf(values, '/event', io);
  await announce({ ...target, authorization }, { lengthMs, reason });
  const until = new Date(Date.now() + lengthMs).toISOString();
  const text = values.end
    ? `maintenance ended: ${reason}`
    : `maintenance for ${formatDuration(lengthMs)}, until ${until}: ${reason}`;
  io.stdout(values.json ? `${JSON.stringify({ until, reason })}\n` : `${text}\n`);
  return 0;
});

/** The work that the options describe. Throws `usage` for what the agent would refuse. */
function workOf({ for: time, reason, end = false }: Values): Work {
  const allowed = 'see svc-agent maintenance --help';
  const missing = (what: string) => usageError('svc-agent maintenance', what, undefined, allowed);
  if (end && time !== undefined) throw missing('options --end and --for exclude each other');
  if (!end && time === undefined) throw missing('option --for is missing');
  if (!end && reason === undefined) throw missing('option --reason is missing');
  if (reason !== undefined && (reason.trim() === '' || reason.length > longestText))
    throw usageError('--reason', 'empty or too long', reason, `use 1 to ${longestText} characters`);
  return { lengthMs: time === undefined ? 0 : lengthOf(time), reason: reason ?? 'planned work is over' };
}

function lengthOf(time: string): number {
  const allowed = 'use a time from 1s to 7d, such as 30m or 2h';
  let lengthMs: number;
  try {
    lengthMs = parseDuration(time);
  } catch (cause) {
    throw usageError('--for', 'not a length of time', time, allowed, cause);
  }
  if (lengthMs >= 1000 && lengthMs <= longestMaintenanceSeconds * 1000) return lengthMs;
  throw usageError('--for', 'too short or too long', time, allowed);
}

const notHeaderText = 'the token has a character that a header cannot have, such as a line break';

/** The token of `admin.events`. Throws `usage` if there is none. */
async function tokenOf(values: Values, io: Io): Promise<string> {
  const file = values['token-file'];
  const token = file === undefined ? (await configured(values, io)).config.admin?.events?.token : { file };
  if (token === undefined) {
    const allowed = 'set it to a secret, or give --token-file';
    throw usageError('admin.events.token', 'missing, so nothing can be announced', undefined, allowed);
  }
  const where = file === undefined ? 'admin.events.token' : '--token-file';
  const text = await createReadSecret(io.env)(token).then(
    (read) => read.trim(),
    (cause: unknown) => {
      throw cause instanceof AgentError ? new AgentError('usage', { ...cause.fault, where }, cause) : cause;
    },
  );
  if (isHeaderText(text)) return text;
  throw usageError(where, notHeaderText, file, 'use a token of one line');
}

/** Sends the announcement. Throws `internal` if the agent does not accept it. */
async function announce(target: AgentTarget, { lengthMs, reason }: Work): Promise<void> {
  const where = targetText(target.url);
  const body = { kind: 'maintenance', text: reason, seconds: lengthMs / 1000 };
  const { status, text } = await tell(target, body).catch((cause: unknown) => {
    const fault = { where, what: `no answer, ${errorText(cause)}`, allowed: 'is the agent running?' };
    throw new AgentError('internal', fault, cause);
  });
  if (status !== 200)
    throw new AgentError('internal', { where, what: `refused with HTTP ${status}, ${text.trim()}` });
}
