import { expect, onTestFinished, test } from 'vitest';
import { ask } from '../../../src/agent/cli/agent-client.ts';
import { loadConfig } from '../../../src/agent/config/load.ts';
import type { AgentConfig } from '../../../src/agent/config/types.ts';
import { bindEndpoints, type EndpointsDeps } from '../../../src/agent/endpoints.ts';
import {
  createListener,
  createListeners,
  type ListenerDeps,
} from '../../../src/reporters/listen/listener.ts';
import { manualClock } from '../../clock.ts';
import { agentFile } from '../../unit/config/agent-file.ts';

test('between the bind and the first gather a scraper is told to come back', async () => {
  const text =
    'metrics: {pullmetrics: {listenAddress: "127.0.0.1:0"}}\nadmin: {listenAddress: "127.0.0.1:0", health: "127.0.0.1:0"}\n';
  const { config } = await loadConfig({ file: agentFile(text), env: {}, cwd: '/' });
  const clock = manualClock();
  const log = { write() {}, named: () => log };
  const drops = { count() {} };
  const starting = () => ({ ok: false, msg: 'starting' });
  const deps = {
    clock,
    log,
    drops,
    readSecret: async () => '',
    health: { health: starting, ready: starting },
  };
  const listeners = createListeners((of) => createListener(of, deps as unknown as ListenerDeps));
  const bound = await bindEndpoints(
    config as AgentConfig,
    { ...deps, listeners } as unknown as EndpointsDeps,
  );
  onTestFinished(() => bound.close());
  for (const { listener, address } of bound.addresses) {
    const answer = await fetch(`http://${address}/metrics`);
    const expected = listener === 'admin.health' ? [404, null] : [503, '1'];
    expect([answer.status, answer.headers.get('retry-after')], listener).toEqual(expected);
    expect((await fetch(`http://${address}/ready`)).status).toBe(503);
    for (const [path, method] of [
      ['/', 'GET'],
      ['/api/status', 'GET'],
      ['/backup/nightly/success', 'POST'],
    ] as const) {
      const status = listener === 'admin' ? 503 : 404;
      expect((await fetch(`http://${address}${path}`, { method })).status, `${listener} ${path}`).toBe(
        status,
      );
    }
    if (listener !== 'admin') continue;
    const foreign = { headers: { origin: 'http://elsewhere.example' } };
    expect((await fetch(`http://${address}/`, foreign)).status).toBe(403);
    await expect(ask({ url: `http://${address}/api/status` })).rejects.toThrow(
      'HTTP 503, the agent is starting or busy; try again in a second',
    );
  }
  expect(bound.addresses).toHaveLength(3);
});
