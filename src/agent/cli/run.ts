import { systemClock } from '../../core/clock.ts';
import { AgentError } from '../../core/errors.ts';
import { loadConfig } from '../config/load.ts';
import { configurationOptions, configured, loadRequest, parseCommand } from './arguments.ts';
import { type Io, onSignals } from './io.ts';

const usage = `Usage: svc-agent run [-c FILE] [--service-config FILE]… [--role ROLE]…

Runs the agent until SIGTERM or SIGINT. SIGHUP, or a changed file, reads the configuration again; a bad one
changes nothing. The log goes to stderr unless log.stdout or log.outputFile says otherwise.
`;

/** `svc-agent run`. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parseCommand('run', args, configurationOptions);
  if (values.help) {
    io.stdout(usage);
    return 0;
  }
  if (positionals.length > 0) {
    throw new AgentError('usage', {
      where: 'svc-agent run',
      what: 'takes no arguments',
      got: positionals.join(' '),
    });
  }
  // The configuration is checked in a process of its own; the agent's code loads meanwhile.
  const [loaded, { startAgent }] = await Promise.all([configured(values, io), import('../agent.ts')]);
  const load = async () => {
    const again = await loadConfig(loadRequest(values, io));
    return again;
  };
  let ask = () => {};
  const asked = new Promise<void>((resolve) => (ask = resolve));
  let reload = () => {};
  const offSignals = onSignals({ stop: () => ask(), reload: () => reload() });
  // Timers of the agent let a process end; this one keeps it until it is told to stop.
  const awake = setInterval(() => {}, 3_600_000);
  try {
    const agent = await startAgent(loaded, { clock: systemClock, load });
    reload = agent.reload;
    await asked;
    await agent.stop();
  } finally {
    clearInterval(awake);
    offSignals();
  }
  return 0;
}
