import { realpathSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { systemClock } from '../../core/clock.ts';
import { usageError } from '../../core/errors.ts';
import { parseDuration } from '../../core/text-formats.ts';
import { onSignals } from '../signals.ts';
import { command } from './arguments.ts';
import { usualPorts } from './demo/config.ts';
import { followAlerts } from './demo/monitoring.ts';
import { createStage, type Stage } from './demo/stage.ts';
import { type DemoAddresses, firstIncident, showLive, usage, welcome } from './demo/text.ts';
import { type Io, timeOfDay } from './io.ts';

const longestMs = parseDuration('1d');

const options = {
  for: { type: 'string' },
  'incident-after': { type: 'string', default: '30s' },
} as const;

/**
 * Runs `svc-agent demo`: the example service and the agent beside it, with Prometheus and Alertmanager if they are installed,
 * until Ctrl-C, SIGTERM or the end of `--for`. It leaves nothing behind, unless the demo itself is killed by SIGKILL. Resolves
 * with 1 if the service or the agent ended by itself, after printing which of them and how.
 */
export const demo = command({ name: 'demo', usage, options }, async (values, io) => {
  const incidentAfterMs = spanOf('--incident-after', values['incident-after'], 0);
  const forMs = values.for === undefined ? undefined : spanOf('--for', values.for, 1000);
  const end = endRequested();
  const print = linePrinter(io, values.json === true);
  const stage = createStage({
    main: realpathSync(process.argv[1] ?? ''),
    wantedPorts: usualPorts,
    path: io.env.PATH,
    untilWell: true,
    print,
  });
  try {
    const ended = Promise.race([end.asked, stage.broken]);
    const addresses = await Promise.race([stage.set(), ended]);
    if (typeof addresses === 'string') return finish(addresses, io);
    if (forMs !== undefined) end.after(forMs);
    const undo = [
      beginIncident(addresses, stage, incidentAfterMs),
      ...(values.json ? [] : [runInteractive(addresses, stage, print, incidentAfterMs, io)]),
    ];
    if (values.json) io.stdout(`${JSON.stringify(addresses)}\n`);
    const outcome = await ended;
    for (const one of undo) one();
    return finish(outcome, io);
  } finally {
    await stage.clear();
    end.undo();
  }
});

/** Prints a line with its time, above the status line; not with --json. */
function linePrinter({ screen, stdout }: Io, isJson: boolean): (line: string) => void {
  if (isJson) return () => {};
  const before = screen.size() ? '\r\u001b[K' : '';
  return (line) => stdout(`${before}${timeOfDay(Date.now())}  ${line}\n`);
}

/** Begins the first incident after a time. Returns the undo. */
function beginIncident({ kinds }: DemoAddresses, stage: Stage, afterMs: number): () => void {
  if (afterMs === 0) return () => {};
  return systemClock.after(afterMs, () => stage.send(firstIncident(kinds).kind));
}

function finish(exitMessage: string, io: Io): number {
  io.stderr(exitMessage);
  return exitMessage === '' ? 0 : 1;
}

/** `asked` resolves, with no message, when the demo must end: at a signal, or after a time. */
function endRequested(): { asked: Promise<string>; after(spanMs: number): void; undo(): void } {
  let end = () => {};
  let cancel = () => {};
  const asked = new Promise<string>((resolve) => {
    end = () => resolve('');
  });
  const undo = onSignals({ stop: () => end(), reload: () => end() });
  return {
    asked,
    after: (spanMs) => {
      cancel = systemClock.after(spanMs, end);
    },
    undo: () => {
      cancel();
      undo();
    },
  };
}

/**
 * The output for a person: the addresses, then the alerts; on a terminal also a status line, and input that begins incidents.
 * Returns the stop.
 */
function runInteractive(
  addresses: DemoAddresses,
  stage: Stage,
  print: (line: string) => void,
  incidentAfterMs: number,
  { stdout, env, screen }: Io,
): () => void {
  const interactive = Boolean(process.stdin.isTTY) && screen.size() !== undefined;
  const incidentAtMs = incidentAfterMs === 0 ? undefined : Date.now() + incidentAfterMs;
  stdout(welcome(addresses, { path: env.PATH, interactive, incidentAtMs }));
  const ends = [followAlerts(addresses.alertmanager, print, systemClock)];
  if (interactive) {
    stdout('\n');
    const input = createInterface({ input: process.stdin }).on('line', (line) => stage.send(line));
    ends.push(
      () => input.close(),
      showLive(addresses.metrics, stdout, screen, systemClock),
      () => stdout('\n'),
    );
  }
  return () => {
    for (const end of ends) end();
  };
}

function spanOf(where: string, text: string, leastMs: number): number {
  const allowed = `use ${leastMs / 1000}s to 24h`;
  try {
    const spanMs = parseDuration(text);
    if (spanMs >= leastMs && spanMs <= longestMs) return spanMs;
  } catch (cause) {
    throw usageError(where, 'not a duration', text, allowed, cause);
  }
  throw usageError(where, 'too short or too long', text, allowed);
}
