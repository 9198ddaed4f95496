import { systemClock } from '../../core/clock.ts';
import { AgentError, systemCode } from '../../core/errors.ts';
import type { Agent } from '../agent.ts';
import { loadConfig } from '../config/load.ts';
import type { LoadRequest } from '../config/types.ts';
import { onSignals, threadsDone } from '../signals.ts';
import {
  buildError,
  type ConfigurationValues,
  command,
  configurationOptions,
  configured,
  invalidConfig,
  loadRequest,
  withBuildFault,
  withNamedFile,
} from './arguments.ts';
import type { Io } from './io.ts';

const usage = `Usage: svc-agent run [FILE | -c FILE] [--service-config FILE]... [--role ROLE]...

Runs the agent until SIGTERM or SIGINT. SIGHUP, or a changed file, reloads the configuration; an invalid one
changes nothing. The log goes to stderr unless log.stdout or log.outputFile is set.
`;

const form = { name: 'run', usage, options: configurationOptions, most: 1 } as const;

/** Runs `svc-agent run`. */
export const run = command(form, async (values, io, files) => {
  // This comes first: a signal ends the agent, however early it arrives.
  let ask = () => {};
  const asked = new Promise<void>((resolve) => (ask = resolve));
  let reload = () => {};
  const offSignals = onSignals({ stop: () => ask(), reload: () => reload() });
  // Timers of the agent do not keep a process alive; this one does until the agent is stopped.
  const awake = setInterval(() => {}, 3_600_000);
  try {
    const starting = start(withNamedFile(values, files), io);
    const agent = await Promise.race([starting, asked]);
    if (!agent) return await endEarly(starting);
    reload = agent.reload;
    await asked;
    await endWithin(agent.stop());
    return 0;
  } finally {
    clearInterval(awake);
    offSignals();
  }
});

/** Starts the agent. Throws `config_invalid` if a part of the configuration cannot be built. */
async function start(values: ConfigurationValues, io: Io): Promise<Agent> {
  // The configuration is checked in a separate process while the agent's code loads.
  const [loaded, { startAgent }] = await Promise.all([configured(values, io), import('../agent.ts')]);
  const request = loadRequest(values, io);
  const load = () => loadConfig(request);
  try {
    return await startAgent(loaded, { clock: systemClock, load });
  } catch (thrown) {
    // Code that could not be loaded is not a fault of the configuration.
    if (systemCode(thrown) === 'EMFILE') throw thrown;
    const isOfRunTime = thrown instanceof AgentError && thrown.code !== 'config_invalid';
    if (isOfRunTime) throw await withPlace(request, thrown);
    if ((await buildError(loaded.config)) === undefined) throw thrown;
    throw invalidConfig(await withBuildFault(request, thrown), io);
  }
}

/** An error of a key, such as an address in use, with the place of the key in the file. */
async function withPlace(request: LoadRequest, error: AgentError): Promise<AgentError> {
  const { faults } = await withBuildFault(request, error);
  return faults.length === 1 ? new AgentError(error.code, faults[0]!, error.cause) : error;
}

/** Ends an agent that was stopped before it was ready: what has started by then is stopped in order. */
async function endEarly(starting: Promise<Agent>): Promise<number> {
  await endWithin(starting.then((agent) => agent.stop()).catch(() => {}));
  return 0;
}

/** The agent stops within 5 s, whatever it waits for. */
const longestStopMs = 4_700;

function endWithin(stopped: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, longestStopMs);
    stopped
      .then(() => threadsDone(longestStopMs))
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}
