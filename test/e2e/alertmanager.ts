import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { parseDuration } from '../../src/core/text-formats.ts';
import { isInstalled } from '../installed.ts';
import { freePort, listening } from '../ports.ts';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';
import { type Running, start } from './process.ts';

const program = 'prometheus-alertmanager';
export const hasAlertmanager = isInstalled(program);

const shipped = fileURLToPath(new URL('../../deploy/alertmanager/alertmanager.yml', import.meta.url));

type Labels = Readonly<Record<string, string>>;

/** An alert as a receiver got it. */
export interface Notice {
  /** Path of the receiver's webhook, which is the receiver's name. */
  receiver: string;
  status: 'firing' | 'resolved';
  labels: Labels;
  annotations: Labels;
}

/** An alert in Alertmanager. */
export interface Held {
  labels: Labels;
  fingerprint: string;
  status: { state: 'active' | 'suppressed' | 'unprocessed'; inhibitedBy: string[] };
}

export interface Alertmanager extends Running {
  /** host:port */
  address: string;
  /** Everything that the receivers got, in order. */
  readonly notices: readonly Notice[];
  held(): Promise<Held[]>;
  stop(): Promise<void>;
}

interface Payload {
  alerts: Omit<Notice, 'receiver'>[];
}

/** Accepts what is sent to any receiver. */
async function startReceivers(notices: Notice[]) {
  return listening(
    createServer(async (request, response) => {
      const { alerts } = JSON.parse(await text(request)) as Payload;
      const receiver = request.url!.slice(1);
      for (const { status, labels, annotations } of alerts)
        notices.push({ receiver, status, labels, annotations });
      response.end();
    }),
  );
}

/** The shipped configuration with its receivers at this port. Its waits are as short as possible, or divided by `cutBy`. */
function configured(port: number, cutBy?: number): string {
  const config = parse(readFileSync(shipped, 'utf8'));
  const short = { group_wait: '500ms', group_interval: '1s' };
  for (const route of [config.route, ...config.route.routes])
    for (const key of ['group_wait', 'group_interval'] as const)
      if (route[key]) route[key] = cutBy ? `${Math.ceil(parseDuration(route[key])! / cutBy)}ms` : short[key];
  for (const receiver of config.receivers)
    for (const webhook of receiver.webhook_configs) {
      const url = new URL(webhook.url);
      url.port = String(port);
      webhook.url = url.href;
    }
  return stringify(config);
}

/** A real Alertmanager with the shipped routes and inhibitions; its receivers are the test. */
export async function startAlertmanager(cutBy?: number): Promise<Alertmanager> {
  const place = folder();
  const notices: Notice[] = [];
  const receivers = await startReceivers(notices);
  const configFile = join(place.path, 'alertmanager.yml');
  writeFileSync(configFile, configured(receivers.port, cutBy));
  const address = `127.0.0.1:${await freePort()}`;
  const running = start(program, [
    `--config.file=${configFile}`,
    `--storage.path=${join(place.path, 'data')}`,
    `--web.listen-address=${address}`,
    '--cluster.listen-address=',
  ]);
  await until('Alertmanager is ready', async () => (await fetch(`http://${address}/-/ready`)).ok);
  return {
    ...running,
    address,
    notices,
    held: async () => (await fetch(`http://${address}/api/v2/alerts`)).json() as Promise<Held[]>,
    async stop() {
      await running.end();
      await receivers.close();
      place.remove();
    },
  };
}
