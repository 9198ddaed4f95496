import { expect, onTestFinished, test } from 'vitest';
import { agentFile } from '../e2e/agent-file.ts';
import { startAgent } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';

test('what was announced, and its end, survives a kill right after the answer, and shows at once', async () => {
  const file = agentFile(newFolder(), { admin: 'events: {token: let-me-in}' });
  const start = async () => {
    const agent = await startAgent(file);
    onTestFinished(() => void agent.end('SIGKILL'));
    const url = `http://${agent.address('admin')}`;
    return {
      kill: () => agent.end('SIGKILL'),
      announce: async (seconds: number) => {
        const body = JSON.stringify({ kind: 'maintenance', text: 'disks', seconds });
        const headers = { authorization: 'Bearer let-me-in' };
        return (await fetch(`${url}/event`, { method: 'POST', headers, body })).status;
      },
      work: async () => JSON.parse(await (await fetch(`${url}/api/status`)).text()).maintenanceReason,
      metric: async () =>
        /^svc_maintenance(?:\{.*\})? (\d)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1],
    };
  };
  const first = await start();
  expect(await first.announce(3600)).toBe(200);
  expect(await first.metric()).toBe('1');
  await first.kill();
  const second = await start();
  expect(await second.work()).toBe('disks');
  expect(await second.announce(0)).toBe(200);
  expect(await second.metric()).toBe('0');
  await second.kill();
  expect(await (await start()).work()).toBeUndefined();
});
