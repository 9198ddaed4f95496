import { expect, onTestFinished, test } from 'vitest';
import { startAgent } from '../../../src/agent/agent.ts';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { freePort } from '../../ports.ts';
import { serving } from '../../serving.ts';
import { agentFile } from '../../unit/config/agent-file.ts';
import { until } from '../../until.ts';

// CONTRACT: without any reporter nothing is re-exported, the admin listener still serves, and there is one warning.
test.each(['', 'metrics: {pullmetrics: ~, pushmetrics: ~}\n'])(
  'without a reporter (%j) the admin listener serves, with a warning',
  async (metrics) => {
    let pages = 0;
    const rolePort = await serving((_, response) => {
      pages++;
      response.setHeader('content-type', 'text/plain; version=0.0.4');
      response.end('# TYPE of_the_role gauge\nof_the_role 1\n');
    });
    const port = await freePort();
    const text = `${metrics}admin: {listenAddress: "127.0.0.1:${port}"}
log: {level: error}
services: {frontend: {scrape: {url: "http://127.0.0.1:${rolePort}/metrics", interval: 100ms, timeout: 100ms}}}
`;
    const load = () => loadConfig({ file: agentFile(text), env: {}, cwd: '/' });
    const { config, ...loaded } = await load();
    expect(loaded.faults).toEqual([]);
    expect(loaded.warnings.filter(({ what }) => what.includes('no reporter'))).toHaveLength(1);
    const agent = await startAgent({ ...loaded, config: config! }, { clock: systemClock, load });
    onTestFinished(() => agent.stop());
    const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
    await until('the role is scraped all the same', () => pages > 1);
    const own = await get('/metrics');
    expect(own).toMatch(/^svc_agent_build_info\{/m);
    expect(own).not.toMatch(/^of_the_role/m);
    expect(JSON.parse(await get('/health'))).toMatchObject({ ok: true });
    expect(JSON.parse(await get('/api/status'))).toHaveProperty('verdict');
  },
);
