import { realpathSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { systemClock } from '../../core/clock.ts';
import { AgentError } from '../../core/errors.ts';
import { parseDuration } from '../../core/text-formats.ts';
import { parseCommand } from './arguments.ts';
import { createStage, type Stage } from './demo/stage.ts';
import { type DemoAddresses, showLive, usage, welcome } from './demo/text.ts';
import { type Io, onSignals } from './io.ts';

/** The agent's default ports (CONTRACT, Configuration). */
const wantedPorts = { metrics: 9464, admin: 9465 };
const longestMs = parseDuration('1d');

/**
 * `svc-agent demo`: the example service and the agent beside it, until Ctrl-C, SIGTERM or the end of `--for`.
 * Leaves nothing behind but what a SIGKILL of the demo itself leaves. Resolves with 1 if one of the two ended
 * by itself, after saying which and how.
 */
export async function demo(args: readonly string[], io: Io): Promise<number> {
  const { values } = parseCommand('demo', args, { for: { type: 'string' } });
  if (values.help) {
    io.stdout(usage);
    return 0;
  }
  const end = endAsked(values.for === undefined ? undefined : spanOf(values.for));
  const terminal = Boolean(process.stdout.isTTY) && !values.json;
  const stage = createStage({
    main: realpathSync(process.argv[1] ?? ''),
    wantedPorts,
    hear: (line) => {
      if (terminal) io.stdout(`\r\u001b[K${line}\n`);
    },
  });
  try {
    const ended = Promise.race([end.asked, stage.broken]);
    const addresses = await Promise.race([stage.set(), ended]);
    if (typeof addresses === 'string') return finish(addresses, io);
    if (values.json) io.stdout(`${JSON.stringify(addresses)}\n`);
    else io.stdout(welcome(addresses, io.env.PATH, terminal));
    const undo = terminal ? attend(addresses, stage, io) : () => {};
    const outcome = await ended;
    undo();
    return finish(outcome, io);
  } finally {
    await stage.clear();
    end.undo();
  }
}

function finish(exitMessage: string, io: Io): number {
  io.stderr(exitMessage);
  return exitMessage === '' ? 0 : 1;
}

/** Resolves, with nothing to say, when the demo shall end. Signals are taken until `undo`. */
function endAsked(afterMs: number | undefined): { asked: Promise<string>; undo: () => void } {
  let end = () => {};
  const asked = new Promise<string>((resolve) => {
    end = () => resolve('');
  });
  const undo = onSignals({ stop: () => end(), reload: () => end() });
  const cancel = afterMs === undefined ? () => {} : systemClock.after(afterMs, end);
  return {
    asked,
    undo: () => {
      cancel();
      undo();
    },
  };
}

/** What a person at a terminal gets besides: a line that lives, and a say in what goes wrong. */
function attend({ metrics }: DemoAddresses, stage: Stage, io: Io): () => void {
  const input = createInterface({ input: process.stdin }).on('line', (line) => stage.tell(line));
  const endLive = showLive(metrics, io.stdout, systemClock);
  return () => {
    input.close();
    endLive();
    io.stdout('\n');
  };
}

function spanOf(text: string): number {
  const allowed = 'use 1s to 24h';
  try {
    const spanMs = parseDuration(text);
    if (spanMs >= 1000 && spanMs <= longestMs) return spanMs;
  } catch (cause) {
    throw new AgentError('usage', { where: '--for', what: 'not a duration', got: text, allowed }, cause);
  }
  throw new AgentError('usage', { where: '--for', what: 'too short or too long', got: text, allowed });
}
