import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { until } from '../../until.ts';
import { type RunningAgent, startAgent } from '../process.ts';

type Config = Readonly<Record<string, unknown>> & { metrics?: object };

/** A built agent that the test configures, kills and starts again; its address stays the same. */
export interface LiveAgent {
  /** The host:port of its metrics. */
  readonly address: string;
  readonly stateDirectory: string;
  /** Makes the agent read a changed configuration and waits until it says whether it accepted it. */
  configure(config: Config): Promise<'taken' | 'refused'>;
  /** Kills the agent. Default: SIGKILL. */
  kill(signal?: NodeJS.Signals): Promise<unknown>;
  restart(): Promise<void>;
  /** Makes the agent check everything and judge the results, whatever the intervals. */
  fact(): Promise<void>;
  /** The number of the agent's probes. */
  probes(): Promise<number>;
  stop(): Promise<unknown>;
}

const said = {
  taken: 'configuration reloaded',
  refused: 'configuration refused; the previous one stays in use',
};

/** Lets a fault make a file hang. */
const hangingFiles = fileURLToPath(new URL('../../fixtures/hanging-files.cjs', import.meta.url));

export async function startLiveAgent(directory: string, name: string, config: Config): Promise<LiveAgent> {
  const file = join(directory, `${name}.yaml`);
  const stateDirectory = join(directory, `${name}-state`);
  const write = (wanted: Config, listenAddress = '127.0.0.1:0') => {
    const own = { instance: name, stateDirectory, admin: { listenAddress: '127.0.0.1:0' } };
    const metrics = { pullmetrics: { listenAddress }, ...wanted.metrics };
    writeFileSync(`${file}.new`, stringify({ ...own, ...wanted, metrics }, { aliasDuplicateObjects: false }));
    renameSync(`${file}.new`, file);
  };
  write(config);
  const started = () => startAgent(file, [], { NODE_OPTIONS: `--require ${hangingFiles}` });
  let running: RunningAgent = await started();
  const address = running.address('metrics');
  let isUp = true;
  const get = async (path: string) => (await fetch(`http://${running.address('admin')}/${path}`)).text();
  const probes = async () =>
    (JSON.parse(await get('probes')) as { name: string }[]).map((probe) => probe.name);
  const count = (text: string) => running.output().split(text).length - 1;
  return {
    address,
    stateDirectory,
    async configure(wanted) {
      const before = { taken: count(said.taken), refused: count(said.refused) };
      write(wanted);
      return until(`agent ${name} reads its configuration again`, () =>
        (['taken', 'refused'] as const).find((outcome) => count(said[outcome]) > before[outcome]),
      );
    },
    kill(signal = 'SIGKILL') {
      isUp = false;
      return running.end(signal);
    },
    async restart() {
      if (isUp) return;
      write(config, address);
      running = await started();
      isUp = true;
    },
    async fact() {
      if (!isUp) return;
      try {
        await Promise.all((await probes()).map((probe) => get(`probe?name=${encodeURIComponent(probe)}`)));
        await get('api/status');
      } catch (thrown) {
        // The agent may have been killed meanwhile.
        if (isUp) throw thrown;
      }
    },
    probes: async () => (await probes()).length,
    stop: () => running.end(),
  };
}
