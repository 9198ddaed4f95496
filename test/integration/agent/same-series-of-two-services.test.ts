import { expect, onTestFinished, test } from 'vitest';
import { startAgent } from '../../../src/agent/agent.ts';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { freePort } from '../../ports.ts';
import { serving } from '../../serving.ts';
import { agentFile } from '../../unit/config/agent-file.ts';

/** A target whose page has one series, which names its service; the target may answer late. */
const target = (value: number, delayMs = 0): Promise<number> =>
  serving((_, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4');
    const page = `# TYPE shared gauge\nshared{svc_service="frontend"} ${value}\n`;
    setTimeout(() => response.end(page), delayMs);
  });

// CONTRACT: if two services send the same series, the first in `services` keeps it; the other's is refused and counted.
test.each([
  ['comes first', 0, 50],
  ['comes last', 50, 0],
])(
  'the page of the first service in the configuration %s: its series is shown, and the other one counted',
  async (_, first, second) => {
    const [one, other, port] = [await target(1, first), await target(2, second), await freePort()];
    const text = `admin: ~
log: {level: error}
metrics: {pullmetrics: {listenAddress: "127.0.0.1:${port}"}}
services:
  worker: {scrape: "http://127.0.0.1:${one}/metrics"}
  frontend: {scrape: "http://127.0.0.1:${other}/metrics"}
`;
    const load = () => loadConfig({ file: agentFile(text), env: {}, cwd: '/' });
    const { config, ...loaded } = await load();
    const agent = await startAgent({ ...loaded, config: config! }, { clock: systemClock, load });
    onTestFinished(() => agent.stop());
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(page.split('\n').filter((line) => line.startsWith('shared'))).toEqual([
      'shared{svc_service="frontend"} 1',
    ]);
    expect(page).toMatch(/^svc_agent_series_refused_total\{family="shared",reason="\w+"[^}]*\} 1$/m);
  },
);
