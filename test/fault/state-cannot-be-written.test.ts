import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startAgent } from '../../src/agent/agent.ts';
import { loadConfig } from '../../src/agent/config/load.ts';
import type { StatusReport } from '../../src/agent/report.ts';
import { systemClock } from '../../src/core/clock.ts';
import { listenersIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { until } from '../until.ts';

test('a state that cannot be written: metric, status and health say so, counting goes on, and the fault ends', async () => {
  const folder = newFolder();
  const path = (name: string) => join(folder, name);
  writeFileSync(
    path('agent.yaml'),
    `stateDirectory: ${path('state')}
log: {outputFile: ${path('agent.log')}}
admin: {listenAddress: 127.0.0.1:0}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
services:
  history: {logs: {paths: ['${path('history.log')}'], startAt: beginning}}
`,
  );
  const line = '{"level":"error","msg":"x"}\n';
  writeFileSync(path('history.log'), line);
  const load = () => loadConfig({ file: path('agent.yaml'), env: {}, cwd: folder });
  const { config, ...loaded } = await load();
  const agent = await startAgent({ ...loaded, config: config! }, { clock: systemClock, load });
  onTestFinished(() => agent.stop());
  const listeners = listenersIn(readFileSync(path('agent.log'), 'utf8'));
  const [metrics, admin] = [listeners.get('metrics')!, listeners.get('admin')!];
  const get = (address: string, route: string) => fetch(`http://${address}${route}`);
  const shown = async () => {
    const page = await (await get(metrics, '/metrics')).text();
    const numberOf = (pattern: RegExp) => Number(pattern.exec(page)?.[1]);
    return {
      degraded: numberOf(/^svc_agent_state_degraded(?:{.*})? (\S+)$/m),
      lines: numberOf(/^svc_log_entries_total{.*level="error".*} (\S+)$/m),
    };
  };
  const shows = (degraded: number, lines: number) =>
    until(`degraded ${degraded}, ${lines} lines`, async () => {
      const now = await shown();
      return now.degraded === degraded && now.lines === lines;
    });
  const said = async () => ({
    health: ((await (await get(admin, '/health')).json()) as { msg: string }).msg,
    verdict: ((await (await get(admin, '/api/status')).json()) as StatusReport).verdict.headline,
  });
  await shows(0, 1);
  expect((await said()).health).toBe('OK');

  // A file is in the place of the directory: not even root can write there.
  renameSync(path('state'), path('moved'));
  writeFileSync(path('state'), '');
  appendFileSync(path('history.log'), line);
  await shows(1, 2);
  // The agent is alive nevertheless: restarting it for this would lose what it has counted.
  expect(await said()).toEqual({
    health: expect.stringContaining('OK, but the state cannot be written'),
    verdict: 'The state cannot be written',
  });

  rmSync(path('state'));
  mkdirSync(path('state'));
  appendFileSync(path('history.log'), line);
  await shows(0, 3);
  expect((await said()).health).toBe('OK');
});
