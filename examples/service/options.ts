import { parseArgs } from 'node:util';
import { AgentError } from '../../src/core/errors.ts';
import { parseDuration } from '../../src/core/text-formats.ts';

/** Whose names the metrics have: those of the catalog, or those of the product, which a vocabulary translates. */
export const metricNames = ['svc', 'cadence'] as const;
export type MetricNames = (typeof metricNames)[number];

export interface ServiceOptions {
  /** Where the log files are written; made if it is not there. */
  directory: string;
  /** Base ports: frontend has this one, history the next, and so on; 0 takes free ones. */
  healthPort: number;
  metricsPort: number;
  controlPort: number;
  /** The first of the ports of the clusters' frontends. */
  rpcPort: number;
  /** Undefined: the service is without a store. */
  storePort: number | undefined;
  /** Everyday log entries a second of each role, and workflows a second in all. */
  ratePerSecond: number;
  names: MetricNames;
  seed: number;
  /** Size at which a log file is rotated. */
  rotateBytes: number;
  /** Mean time between incidents; 0: only those that are asked for. */
  incidentEveryMs: number;
}

export const usage = `Usage: node dist/example-service.js [options]
  --directory DIR       where the log files go (.demo)
  --health-port N       first of four ports of /health (7933; 0: free ones)
  --metrics-port N      first of four ports of /metrics (8000; 0: free ones)
  --control-port N      port for POST /incident?kind=… (7930; 0: a free one)
  --rpc-port N          first of two ports of the clusters' frontends, dc1 and dc2 (7833; 0: free ones)
  --store-port N        port of the store, which speaks PostgreSQL (7940; 0: a free one)
  --no-store            without a store
  --rate N              log entries a second and role, workflows a second (10)
  --names NAMES         names of the metrics: svc, those of the catalog, or cadence, those of the product (svc)
  --seed N              of the pseudo-random numbers (1)
  --rotate-bytes N      size at which a log file is rotated (1000000)
  --incident-every D    mean time between incidents, which last a third of it (2m; 0s: none by itself)
`;

const defaults = {
  directory: { type: 'string', default: '.demo' },
  'health-port': { type: 'string', default: '7933' },
  'metrics-port': { type: 'string', default: '8000' },
  'control-port': { type: 'string', default: '7930' },
  'rpc-port': { type: 'string', default: '7833' },
  'store-port': { type: 'string', default: '7940' },
  'no-store': { type: 'boolean' },
  rate: { type: 'string', default: '10' },
  names: { type: 'string', default: 'svc' },
  seed: { type: 'string', default: '1' },
  'rotate-bytes': { type: 'string', default: '1000000' },
  'incident-every': { type: 'string', default: '2m' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Reads the arguments; undefined asks for the usage. Throws `usage` on what cannot be meant. */
export function parseOptions(args: readonly string[]): ServiceOptions | undefined {
  const { values } = parseArgs({ args: [...args], options: defaults });
  if (values.help) return undefined;
  // The last of four ports has to be one, too.
  const port = { from: 0, to: 65_532 };
  return {
    directory: values.directory,
    healthPort: integer('--health-port', values['health-port'], port),
    metricsPort: integer('--metrics-port', values['metrics-port'], port),
    controlPort: integer('--control-port', values['control-port'], port),
    rpcPort: integer('--rpc-port', values['rpc-port'], port),
    storePort: values['no-store'] ? undefined : integer('--store-port', values['store-port'], port),
    ratePerSecond: integer('--rate', values.rate, { from: 1, to: 10_000 }),
    names: namesOf(values.names),
    seed: integer('--seed', values.seed, { from: 0, to: 2 ** 31 }),
    rotateBytes: integer('--rotate-bytes', values['rotate-bytes'], { from: 1000, to: 2 ** 40 }),
    incidentEveryMs: parseDuration(values['incident-every'], '--incident-every'),
  };
}

function namesOf(text: string): MetricNames {
  const names = metricNames.find((one) => one === text);
  if (names) return names;
  throw new AgentError('usage', {
    where: '--names',
    what: 'unknown names',
    got: text,
    allowed: metricNames.join(' or '),
  });
}

function integer(where: string, text: string, { from, to }: { from: number; to: number }): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= from && value <= to) return value;
  throw new AgentError('usage', {
    where,
    what: 'not a usable number',
    got: text,
    allowed: `${from} to ${to}`,
  });
}
