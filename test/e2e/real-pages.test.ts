import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { isInstalled } from '../installed.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { writeAgentFile } from './agent-file.ts';
import { start, startAgent } from './process.ts';
import { hasPrometheus, startPrometheus } from './prometheus.ts';
import { hasVictoriaMetrics, startVictoriaMetrics } from './victoria-metrics.ts';

const started: { end(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const running of started.splice(0).reverse()) await running.end();
});

/** Real programs with a metrics page; each function starts one and resolves with the page's URL. */
const programs: [name: string, isThere: boolean, start: (directory: string) => Promise<string>][] = [
  [
    'Prometheus',
    hasPrometheus,
    async (directory) => {
      const address = `127.0.0.1:${await freePort()}`;
      const prometheus = await startPrometheus(directory, { self: address });
      started.push(prometheus);
      return `http://${prometheus.address}/metrics`;
    },
  ],
  [
    'Alertmanager',
    isInstalled('prometheus-alertmanager'),
    async (directory) => {
      const address = `127.0.0.1:${await freePort()}`;
      const config = join(directory, 'alertmanager.yml');
      writeFileSync(config, 'route: {receiver: none}\nreceivers: [{name: none}]\n');
      const args = [
        `--config.file=${config}`,
        `--storage.path=${directory}/am`,
        `--web.listen-address=${address}`,
        '--cluster.listen-address=',
      ];
      started.push(start('prometheus-alertmanager', args));
      return `http://${address}/metrics`;
    },
  ],
  [
    'node_exporter',
    isInstalled('prometheus-node-exporter'),
    async () => {
      const address = `127.0.0.1:${await freePort()}`;
      started.push(start('prometheus-node-exporter', [`--web.listen-address=${address}`]));
      return `http://${address}/metrics`;
    },
  ],
  [
    'VictoriaMetrics',
    hasVictoriaMetrics,
    async (directory) => {
      const store = await startVictoriaMetrics(directory);
      started.push(store);
      return `http://${store.address}/metrics`;
    },
  ],
];

interface Status {
  scrapes: { up: boolean; page?: { samples: number; invalidLines: number } }[];
}

for (const [name, isThere, startProgram] of programs) {
  test.skipIf(!isThere)(
    `the page of ${name} is taken without an invalid line, and promtool reads what comes out`,
    async () => {
      const place = newFolder();
      const url = await startProgram(place);
      await until('the page is there', async () => (await fetch(url)).ok);
      const scrape = `{url: '${url}', interval: 1s, timeout: 900ms}`;
      const agent = await startAgent(writeAgentFile(place, `services: {history: {scrape: ${scrape}}}\n`));
      started.push(agent);
      const status = await until('the page is taken', async () => {
        const report = (await (await fetch(`http://${agent.address('admin')}/api/status`)).json()) as Status;
        return report.scrapes[0]?.page ? report.scrapes[0] : undefined;
      });
      expect(status.page!.invalidLines).toBe(0);
      expect(status.page!.samples).toBeGreaterThan(100);
      const page = await (await fetch(`http://${agent.address('metrics')}/metrics?service=history`)).text();
      const read = spawnSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' });
      // Status 3 is only lint, which is the target's affair; 1 is a page that cannot be read.
      expect([0, 3], read.stderr).toContain(read.status);
    },
  );
}
