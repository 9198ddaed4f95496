import { errorText } from '../../core/errors.ts';
import { ask, shownUrl, type Target, targetOf, targetOptions, targetUsage } from './agent-client.ts';
import { parseCommand } from './arguments.ts';
import type { Io } from './io.ts';

const usage = `Usage: svc-agent healthcheck [-c FILE] [--ready] [--url URL [--ca FILE | --insecure]]

Asks a running agent for /health (or /ready) and exits with 0 if it says so, else with 1.
Made for HEALTHCHECK lines and exec probes: it needs no curl in the image.
${targetUsage}`;

/** `svc-agent healthcheck`: the agent's own health over HTTP. */
export async function healthcheck(args: readonly string[], io: Io): Promise<number> {
  const { values } = parseCommand('healthcheck', args, {
    ...targetOptions,
    ready: { type: 'boolean' },
  });
  if (values.help) {
    io.stdout(usage);
    return 0;
  }
  const target = await targetOf(values, values.ready ? '/ready' : '/health', io);
  const answer = await healthOf(target);
  io.stdout(values.json ? `${JSON.stringify(answer)}\n` : `${answer.ok ? 'ok' : 'not ok'}: ${answer.msg}\n`);
  return answer.ok ? 0 : 1;
}

async function healthOf(target: Target): Promise<{ ok: boolean; msg: string }> {
  try {
    const { ok, msg } = (await ask(target)) as { ok?: unknown; msg?: unknown };
    return { ok: ok === true, msg: typeof msg === 'string' ? msg : 'an answer without msg' };
  } catch (error) {
    return { ok: false, msg: `${shownUrl(target.url)}: ${errorText(error)}` };
  }
}
