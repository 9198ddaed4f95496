import { expect, test } from 'vitest';
import { startAgent } from '../../../src/agent/agent.ts';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { freePort } from '../../ports.ts';
import { serving } from '../../serving.ts';
import { agentFile } from '../../unit/config/agent-file.ts';
import { until } from '../../until.ts';

/** `?service=` is 503 for a role whose last scrape failed; without a scrape, its health check; with neither, never. */
test('a role is down by its scrape, without one by its health check, and with neither never', async () => {
  const pagePort = await serving((_, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4');
    response.end('# TYPE of_the_role gauge\nof_the_role 1\n');
  });
  const [port, nobody] = [await freePort(), await freePort()];
  const dead = `http://127.0.0.1:${nobody}`;
  const text = `admin: ~
log: {level: error}
metrics: {pullmetrics: {listenAddress: "127.0.0.1:${port}"}}
services:
  frontend: {scrape: "http://127.0.0.1:${pagePort}/metrics", health: "${dead}/health"}
  history: {scrape: "${dead}/metrics", health: "tcp://127.0.0.1:${pagePort}"}
  matching: {health: "${dead}/health"}
  worker: {logs: {paths: [/no/such/place/*.log]}}
`;
  const load = () => loadConfig({ file: agentFile(text), env: {}, cwd: '/' });
  const { config, ...loaded } = await load();
  const agent = await startAgent({ ...loaded, config: config! }, { clock: systemClock, load });
  try {
    const statusOf = async (query: string) =>
      (await fetch(`http://127.0.0.1:${port}/metrics${query}`)).status;
    await until('the health check has failed', async () => (await statusOf('?service=matching')) === 503);
    expect(await statusOf('?service=frontend')).toBe(200);
    expect(await statusOf('?service=history')).toBe(503);
    expect(await statusOf('?service=worker')).toBe(200);
    expect(await statusOf('?service=agent')).toBe(200);
    expect(await statusOf('')).toBe(200);
  } finally {
    await agent.stop();
  }
});
