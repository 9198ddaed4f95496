import { createSocket } from 'node:dgram';
import { expect, onTestFinished, test } from 'vitest';
import { startAgent } from '../../../src/agent/agent.ts';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { manualClock } from '../../clock.ts';
import { openReceiver } from '../../hosted.ts';
import { serving } from '../../serving.ts';
import { agentFile } from '../../unit/config/agent-file.ts';
import { until } from '../../until.ts';

/** A role that counts how often its page is requested. */
async function startRole() {
  let pages = 0;
  const port = await serving((_, response) => {
    pages++;
    response.setHeader('content-type', 'text/plain; version=0.0.4');
    response.end(`# TYPE of_the_role gauge\nof_the_role ${pages}\n`);
  });
  return { port, pages: () => pages };
}

/** A receiver of reports: the reporter's configuration, and how many reports contained the role's series. */
interface Receiving {
  reporter: string;
  reports(): number;
}

async function receiveHosted(): Promise<Receiving> {
  const receiver = await openReceiver();
  onTestFinished(() => receiver.close());
  const has = (name: string | undefined) => name === 'of_the_role';
  return {
    reporter: `hostedmetrics: {protocol: remotewrite, endpoint: "${receiver.url}"}`,
    reports: () =>
      receiver.taken().filter((one) => one.samples().some(({ labels }) => has(labels.__name__))).length,
  };
}

async function receivePushed(): Promise<Receiving> {
  let reports = 0;
  const socket = createSocket('udp4', (datagram) => {
    if (/^of_the_role\b/m.test(datagram.toString())) reports++;
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  onTestFinished(() => void socket.close());
  return {
    reporter: `pushmetrics: {hostPort: "127.0.0.1:${socket.address().port}"}`,
    reports: () => reports,
  };
}

const scrapeIntervalMs = 7_200_000;

/** Only a scrape of the agent, or the interval of the role's own scrape, asks the role for its page. */
test.each([
  ['hosted', receiveHosted],
  ['push', receivePushed],
])('%s reports show the last page, and never scrape a role themselves', async (_, receive) => {
  const role = await startRole();
  const { reporter, reports } = await receive();
  const clock = manualClock();
  const text = `admin: ~
log: {level: error}
metrics:
  reportingInterval: 10s
  ${reporter}
services:
  history: {scrape: {url: "http://127.0.0.1:${role.port}/metrics", interval: 2h}}
`;
  const load = () => loadConfig({ file: agentFile(text), env: {}, cwd: '/' });
  const { config, ...loaded } = await load();
  const agent = await startAgent({ ...loaded, config: config! }, { clock, load });
  try {
    await until('the first page is there', () => role.pages() === 1);
    for (let round = 0; round < 5; round++) {
      const before = reports();
      await until('a report with the series of the role', () => {
        if (reports() === before) clock.advance(10_000);
        return reports() > before;
      });
    }
    expect(clock.monotonicMs()).toBeLessThan(scrapeIntervalMs);
    expect(role.pages()).toBe(1);
    clock.advance(scrapeIntervalMs - clock.monotonicMs());
    await until('the interval of the scrape asks for a page', () => role.pages() === 2);
  } finally {
    await agent.stop();
  }
});
