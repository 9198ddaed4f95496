import { fileURLToPath } from 'node:url';
import { until } from '../until.ts';
import { type Running, start } from './process.ts';

const serviceFile = fileURLToPath(new URL('../../dist/example-service.js', import.meta.url));

interface ExampleRole {
  health: string;
  metrics: string;
  log: string;
}

/** The example service as a separate process, on free ports and quiet: it has no incidents unless they are requested. */
export interface Example extends Running {
  roles: Record<string, ExampleRole>;
  /** The host:port of each cluster's frontend. */
  clusters: Record<string, string>;
  domains: string[];
  /** The archives' URIs. */
  archives: Record<string, string>;
  /** Begins an incident of a kind. */
  incident(kind: string, target?: string): Promise<void>;
  /** Ends the incident of a kind, if there is one. */
  endIncident(kind: string): Promise<void>;
}

export async function startExample(directory: string, args: readonly string[] = []): Promise<Example> {
  const running = start(process.execPath, [
    serviceFile,
    '--directory',
    directory,
    '--health-port',
    '0',
    '--metrics-port',
    '0',
    '--control-port',
    '0',
    '--rpc-port',
    '0',
    '--no-store',
    '--incident-every',
    '0s',
    ...args,
  ]);
  const ready = await until('the example service is ready', () => {
    const line = running
      .output()
      .split('\n')
      .find((text) => text.startsWith('{"ready":true'));
    if (!line && running.child.exitCode !== null) throw new Error(running.output());
    return line
      ? (JSON.parse(line) as Omit<Example, keyof Running | 'incident' | 'endIncident'> & { incident: string })
      : undefined;
  });
  const order = async (url: string) => {
    const response = await fetch(url, { method: 'POST' });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  };
  return {
    ...running,
    ...{ roles: ready.roles, clusters: ready.clusters, domains: ready.domains, archives: ready.archives },
    incident: (kind, target) => order(`${ready.incident}?kind=${kind}${target ? `&target=${target}` : ''}`),
    endIncident: (kind) => order(`${new URL('/end', ready.incident)}?kind=${kind}`),
  };
}

/** The number of lines in the history role's page when nothing is missing. */
const wholeLines = 414;

/** The history role's page once every series has counted something; before that it lacks some series. */
export const wholePage = (example: Example): Promise<string> =>
  until('the page has all its series', async () => {
    const text = await (await fetch(example.roles.history!.metrics)).text();
    return text.split('\n').length > wholeLines ? text : undefined;
  });
