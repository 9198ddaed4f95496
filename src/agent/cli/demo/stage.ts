import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  type DemoPorts,
  demoConfig,
  eventTokenFile,
  freePorts,
  type ServiceAddresses,
  startTurn,
} from './config.ts';
import { startMonitoring } from './monitoring.ts';
import { type ChildProgram, type Children, createChildren, untilReady } from './programs.ts';
import type { DemoAddresses } from './text.ts';

/** How long the programs may take to end: the demo ends within 5 s, whatever its children do. */
const graceMs = 4000;

/** All that the demo has open: its programs and a directory. */
export interface Stage {
  /**
   * Starts the service, the agent, and Prometheus and Alertmanager if they are installed. Resolves once the agent is ready;
   * rejects if it is not ready in time.
   */
  set(): Promise<DemoAddresses>;
  /** Resolves with a text to print if the service or the agent ends by itself. */
  readonly broken: Promise<string>;
  /** Begins or ends an incident in the example service, as if the line were typed there. */
  send(line: string): void;
  /** Ends every program and removes the directory. Nothing can be started any more. */
  clear(): Promise<void>;
}

interface StageOptions {
  /** The agent's bundle. The bundles of the example service and of its client are beside it. */
  main: string;
  /** Where the programs listen; other ports are used if these are not free. */
  wantedPorts: DemoPorts;
  /** The search path for Prometheus and Alertmanager, in the form of `PATH`. */
  path: string | undefined;
  /** Whether the agent starts only when every role is healthy, so that it reports no problem at first. */
  untilWell: boolean;
  /** Called with each line that the service prints about its incidents and about ports in use. */
  print(line: string): void;
}

type RunningService = ServiceAddresses & { child: ChildProgram };

export function createStage(options: StageOptions): Stage {
  const directory = mkdtempSync(join(tmpdir(), 'svc-agent-demo-'));
  const children = createChildren();
  let service: RunningService | undefined;
  return {
    set: async () => {
      const choose = async (whose: 'service' | 'others') => {
        const { ports, taken } = await freePorts(options.wantedPorts, whose);
        for (const line of taken) options.print(line);
        return ports;
      };
      const endTurn = await startTurn(children.ending, options.print);
      try {
        service = await startService(children, directory, await choose('service'), options);
        if (options.untilWell) await rolesWell(service, children);
        return await startAgent(children, service, await choose('others'), options);
      } finally {
        endTurn();
      }
    },
    broken: children.broken,
    send: (line) => service?.child.send(line),
    clear: async () => {
      await children.end(graceMs);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Resolves when the service prints that it is ready; rejects if it is ended before. If it exits, `broken` resolves. */
function startService(
  children: Children,
  directory: string,
  ports: DemoPorts,
  { main, print }: Pick<StageOptions, 'main' | 'print'>,
) {
  const args = Object.entries({
    '--directory': directory,
    '--health-port': ports.health,
    '--metrics-port': ports.pages,
    '--control-port': ports.control,
    '--rpc-port': ports.rpc,
    '--store-port': ports.store,
    // A real service sends these names too, and the vocabulary translates them.
    '--names': 'cadence',
    // Only the demo starts incidents.
    '--incident-every': '0s',
  }).flatMap(([option, value]) => [option, String(value)]);
  return new Promise<RunningService>((resolve, reject) => {
    children.ending.addEventListener('abort', () => reject(children.ending.reason));
    const program = join(dirname(main), 'example-service.js');
    const child = children.start('the example service', [process.execPath, program, ...args], (line) => {
      if (line.startsWith('{"ready":true')) {
        resolve({ ...(JSON.parse(line) as ServiceAddresses), child });
      } else print(serviceLine(line));
    });
  });
}

/** A line that the service wrote, in a form for people. */
function serviceLine(line: string): string {
  if (!line.startsWith('{')) return line;
  const { incident, phase, outcome } = JSON.parse(line) as {
    incident?: { kind: string; target: string };
    phase?: 'began' | 'ended';
    outcome?: string;
  };
  if (!incident) return outcome ?? line;
  return `incident${phase === 'ended' ? ' over' : ''}: ${incident.kind} ${incident.target}`;
}

/** Resolves when every role is healthy, or after a time limit: the agent reports roles that are not healthy. */
async function rolesWell({ roles }: RunningService, children: Children): Promise<void> {
  await Promise.allSettled(Object.values(roles).map(({ health }) => untilReady(health, children.ending)));
}

async function startAgent(
  children: Children,
  service: RunningService,
  ports: DemoPorts,
  { main, path, print }: StageOptions,
): Promise<DemoAddresses> {
  const { directory, incident, end, kinds } = service;
  const config = join(directory, 'agent.yaml');
  children.ending.throwIfAborted();
  writeFileSync(eventTokenFile(directory), randomBytes(16).toString('hex'), { mode: 0o600 });
  writeFileSync(config, demoConfig(service, describeCommand(main), ports));
  const agent = children.start('the agent', [process.execPath, main, 'run', '-c', config]);
  const listener = `http://127.0.0.1:${ports.metrics}`;
  const [monitoring] = await Promise.all([
    startMonitoring(children, directory, { ports, roles: Object.keys(service.roles), path, print }),
    untilReady(`${listener}/ready`, children.ending),
  ]);
  const { pids, ...monitored } = monitoring;
  return {
    metrics: `${listener}/metrics`,
    admin: `http://127.0.0.1:${ports.admin}/`,
    probes: `http://127.0.0.1:${ports.admin}/probes`,
    ...monitored,
    program: main,
    config,
    incident,
    end,
    kinds,
    directory,
    pids: { agent: agent.pid, service: service.child.pid, ...pids },
  };
}

/** The client of the example service, which is used for each cluster. */
const describeCommand = (main: string): string[] => [
  process.execPath,
  join(dirname(main), 'example-cli.js'),
  ...['domain', 'describe', '--address', '{address}', '--domain', '{domain}', '--print_json'],
];
