import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type AgentPorts, demoConfig, prometheusConfig, type ServiceAddresses } from './config.ts';
import { type Child, type Children, createChildren, freePort, untilReady } from './programs.ts';
import type { DemoAddresses } from './text.ts';

/** The demo ends within 5 s, whatever its children do. */
const graceMs = 4000;

/** Everything the demo has open: two programs and a directory. */
export interface Stage {
  /** Starts the service, then the agent; resolves once the agent is ready, rejects if it is not in time. */
  set(): Promise<DemoAddresses>;
  /** Resolves with what to print if a program ends by itself. */
  readonly broken: Promise<string>;
  /** Makes something go wrong in the example service, as if typed there. */
  tell(line: string): void;
  /** Ends what runs and removes the directory; nothing is started any more. */
  clear(): Promise<void>;
}

export interface StageOptions {
  /** The agent's bundle; those of the example service and of its client stand beside it. */
  main: string;
  /** Where the agent shall listen; other ports are taken if these are in use. */
  wantedPorts: AgentPorts;
  /** Hears what the service says of its incidents. */
  hear(line: string): void;
}

type RunningService = ServiceAddresses & { child: Child };

export function createStage(options: StageOptions): Stage {
  const directory = mkdtempSync(join(tmpdir(), 'svc-agent-demo-'));
  const children = createChildren();
  let service: RunningService | undefined;
  return {
    set: async () => {
      service = await startService(children, directory, options);
      return startAgent(children, service, options);
    },
    broken: children.broken,
    tell: (line) => service?.child.tell(line),
    clear: async () => {
      await children.end(graceMs);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Resolves when the service says it is ready; rejects if the end comes first. If it dies, `broken` says so. */
function startService(children: Children, directory: string, { main, hear }: StageOptions) {
  const program = join(dirname(main), 'example-service.js');
  const ports = ['health', 'metrics', 'control', 'rpc', 'store'].flatMap((what) => [`--${what}-port`, '0']);
  return new Promise<RunningService>((resolve, reject) => {
    children.ending.addEventListener('abort', () => reject(children.ending.reason));
    const child = children.start(
      'the example service',
      [program, '--directory', directory, ...ports],
      (line) => {
        if (line.startsWith('{"ready":true')) {
          resolve({ ...(JSON.parse(line) as ServiceAddresses), child });
        } else hear(line);
      },
    );
  });
}

async function startAgent(children: Children, service: RunningService, options: StageOptions) {
  const { directory, incident, kinds } = service;
  const ports = {
    metrics: await freePort(options.wantedPorts.metrics),
    admin: await freePort(options.wantedPorts.admin),
  };
  const config = join(directory, 'agent.yaml');
  children.ending.throwIfAborted();
  writeFileSync(config, demoConfig(service, describeCommand(options.main), ports));
  writeFileSync(join(directory, 'prometheus.yml'), prometheusConfig(ports, Object.keys(service.roles)));
  const agent = children.start('the agent', [options.main, 'run', '-c', config]);
  const listener = `http://127.0.0.1:${ports.metrics}`;
  await untilReady(`${listener}/ready`, children.ending);
  return {
    metrics: `${listener}/metrics`,
    admin: `http://127.0.0.1:${ports.admin}/`,
    probes: `http://127.0.0.1:${ports.admin}/probes`,
    program: options.main,
    config,
    incident,
    kinds,
    directory,
    pids: { agent: agent.pid, service: service.child.pid },
  };
}

/** The example service's client, which each cluster is asked by. */
const describeCommand = (main: string): string[] => [
  process.execPath,
  join(dirname(main), 'example-cli.js'),
  ...['domain', 'describe', '--address', '{address}', '--domain', '{domain}', '--print_json'],
];
