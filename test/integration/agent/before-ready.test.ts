import { expect, onTestFinished, test } from 'vitest';
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
  }
  expect(bound.addresses).toHaveLength(3);
});
