import { type AddressInfo, createServer } from 'node:net';

/** The port that each part of the demo listens on if it is free; 0: any free port. */
export interface DemoPorts {
  metrics: number;
  admin: number;
  prometheus: number;
  alertmanager: number;
  /** The example service: the first of four, four, one, two and one. */
  health: number;
  pages: number;
  control: number;
  rpc: number;
  store: number;
}

/** Those of the agent, Prometheus and Alertmanager by default, and those of examples/agent.yaml. */
export const usualPorts: DemoPorts = {
  metrics: 9464,
  admin: 9465,
  prometheus: 9090,
  alertmanager: 9093,
  health: 7933,
  pages: 8000,
  control: 7930,
  rpc: 7833,
  store: 7940,
};

const parts: Readonly<Record<keyof DemoPorts, { what: string; count: number }>> = {
  metrics: { what: 'the agent’s metrics', count: 1 },
  admin: { what: 'the status page', count: 1 },
  prometheus: { what: 'Prometheus', count: 1 },
  alertmanager: { what: 'Alertmanager', count: 1 },
  health: { what: 'the roles’ health', count: 4 },
  pages: { what: 'the roles’ metrics', count: 4 },
  control: { what: 'the example service’s control port', count: 1 },
  rpc: { what: 'the clusters’ frontends', count: 2 },
  store: { what: 'the store', count: 1 },
};

/** The parts of the example service; the others are started after it. */
const serviceParts: readonly (keyof DemoPorts)[] = ['health', 'pages', 'control', 'rpc', 'store'];

/**
 * For each part of the example service, or for each of the others, the port that is wanted if it is free (of several in a
 * row: all of them), else another one; and what to say of those that are taken. To be asked just before the part starts,
 * since somebody may be quicker to take a port.
 */
export async function freePorts(
  wanted: DemoPorts,
  whose: 'service' | 'others',
): Promise<{ ports: DemoPorts; taken: string[] }> {
  const ports = { ...wanted };
  const taken: string[] = [];
  for (const key of Object.keys(parts) as (keyof DemoPorts)[]) {
    if (serviceParts.includes(key) !== (whose === 'service')) continue;
    const { what, count } = parts[key];
    const row = wanted[key] === 0 ? [0] : Array.from({ length: count }, (_, i) => wanted[key] + i);
    const got = await Promise.all(row.map(tryPort));
    const missing = row.filter((_, i) => got[i] === undefined);
    if (missing.length === 1) taken.push(`port ${missing[0]} is taken, another one is used for ${what}`);
    if (missing.length > 1) taken.push(`ports ${missing.join(', ')} are taken, others are used for ${what}`);
    // The example service finds free ports itself; it needs several that need not stand in a row.
    if (count > 1) ports[key] = missing.length > 0 ? 0 : wanted[key];
    else ports[key] = got[0] ?? (await tryPort(0)) ?? 0;
  }
  return { ports, taken };
}

/** The port of loopback if it is free. */
function tryPort(port: number): Promise<number | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => {
      const { port: got } = server.address() as AddressInfo;
      server.close(() => resolve(got));
    });
  });
}
