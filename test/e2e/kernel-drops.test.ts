import { createSocket } from 'node:dgram';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';
import { startAgent } from './process.ts';

const value = (page: string, series: string) =>
  Number(
    page
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')[1] ?? Number.NaN,
  );

test.runIf(process.platform === 'linux')(
  'what the kernel drops is a drop among the others, with a reason of the closed list',
  async () => {
    const { path, remove } = folder();
    const config = join(path, 'agent.yaml');
    writeFileSync(
      config,
      stringify({
        stateDirectory: join(path, 'state'),
        metrics: { pullmetrics: { listenAddress: '127.0.0.1:0' } },
        admin: { listenAddress: '127.0.0.1:0' },
        services: { history: { statsd: { listen: '127.0.0.1:0', receiveBufferBytes: 65_536 } } },
      }),
    );
    const agent = await startAgent(config);
    try {
      const [host = '', port] = agent.address('services.history.statsd.listen').split(':');
      const read = async () => (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
      const dropped = 'svc_agent_dropped_total{component="statsd",reason="buffer_full"}';
      expect(value(await read(), dropped)).toBe(0);
      const socket = createSocket('udp4');
      agent.child.kill('SIGSTOP');
      const datagram = `requests:1|c|#operation:${'x'.repeat(1000)}`;
      for (let sent = 0; sent < 500; sent++)
        await new Promise((resolve) => socket.send(datagram, Number(port), host, resolve));
      agent.child.kill('SIGCONT');
      socket.close();
      const page = await until('the kernel’s figure is read', async () => {
        const text = await read();
        return value(text, dropped) > 0 ? text : undefined;
      });
      expect(value(page, dropped)).toBe(value(page, 'svc_agent_statsd_kernel_drops_total'));
    } finally {
      agent.child.kill('SIGCONT');
      await agent.end();
      remove();
    }
  },
);
