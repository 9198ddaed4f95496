/**
 * Measures the private memory of the built agent at 1, 10 and 100 times the limit of series per metric, for pages, statsd and
 * logs: refused series must cost next to nothing. Then a million values of a tag are sent over TCP, and CPU seconds and private
 * memory above the idle agent are measured. `npm run bench -- limits [LIMIT]`, default 2000; `limits million [RUNS]` for the last
 * part alone.
 */
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { numberAt, textAt } from './arguments.ts';
import { pause, startAgent, usageOf } from './process.ts';

const isMillionAlone = textAt(0) === 'million';
const limit = isMillionAlone ? 2000 : numberAt(0, 'LIMIT', 2000);
const millionRuns = isMillionAlone ? numberAt(1, 'RUNS', 5) : 1;
const factors = [1, 10, 100];
const agentMain = join(process.env.SVC_AGENT_ROOT ?? '.', 'dist', 'main.js');
const flags = (process.env.AGENT_FLAGS ?? '').split(' ').filter(Boolean);

interface Running {
  pid: number;
  output(): string;
  url: string;
  end(): Promise<void>;
}

async function startLimited(directory: string, service: string): Promise<Running> {
  const config = join(directory, 'agent.yaml');
  writeFileSync(
    config,
    `stateDirectory: ${join(directory, 'state')}
limits: {seriesPerMetric: ${limit}}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: ~
services: {history: ${service}}
`,
  );
  const { child, output, address } = await startAgent(agentMain, config, { flags });
  return {
    pid: child.pid!,
    output,
    url: `http://${address('metrics')}/metrics`,
    async end() {
      const closed = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGTERM');
      await closed;
    },
  };
}

/** Feeds `count` distinct series and returns when the agent shows all of them, one by one or summed up. */
type Feed = (directory: string, count: number) => Promise<{ agent: Running; close(): void }>;

async function waitForTotal({ url }: Running, name: string, total: number): Promise<void> {
  for (;;) {
    const text = await (await fetch(url)).text();
    let sum = 0;
    for (const [, value] of text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'))) sum += Number(value);
    if (sum >= total) return;
    await pause(300);
  }
}

/** Sends a counter with this many values of a tag, and returns when the agent shows all of them. */
async function sendClients(agent: Running, count: number): Promise<() => void> {
  const address = /"listener":"[^"]*tcp","address":"([^"]+):(\d+)"/.exec(agent.output())!;
  const socket = connect(Number(address[2]), address[1]);
  for (let n = 0; n < count; n += 1000) {
    const lines = Array.from(
      { length: Math.min(1000, count - n) },
      (_, i) => `requests:1|c|#client:c${n + i}\n`,
    );
    if (!socket.write(lines.join(''))) await new Promise((resolve) => socket.once('drain', resolve));
  }
  await waitForTotal(agent, 'requests', count);
  return () => socket.destroy();
}

async function million(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-agent-limits-'));
  try {
    const agent = await startLimited(directory, '{statsd: {tcp: 127.0.0.1:0}}');
    await pause(3_000);
    const idle = usageOf(agent.pid);
    let mostMiB = 0;
    const sampling = setInterval(() => {
      mostMiB = Math.max(mostMiB, usageOf(agent.pid).anonymousMiB);
    }, 50);
    const close = await sendClients(agent, 1_000_000);
    const { cpuSeconds, anonymousMiB } = usageOf(agent.pid);
    clearInterval(sampling);
    process.stdout.write(
      `a million values of a tag: ${(cpuSeconds - idle.cpuSeconds).toFixed(2)} CPU s, private ${(anonymousMiB - idle.anonymousMiB).toFixed(1)} MiB above idle, at most ${(mostMiB - idle.anonymousMiB).toFixed(1)}\n`,
    );
    await agent.end();
    close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const feeds: Record<string, Feed> = {
  async pages(directory, count) {
    const lines = Array.from({ length: count }, (_, n) => `requests{client="client-${n}"} 1`);
    const body = `# TYPE requests counter\n${lines.join('\n')}\n`;
    const server = createServer((_request, response) => response.end(body));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const agent = await startLimited(
      directory,
      `{scrape: {url: 'http://127.0.0.1:${port}/metrics', interval: 2s, timeout: 2s}}`,
    );
    await waitForTotal(agent, 'requests', count);
    return {
      agent,
      close() {
        server.closeAllConnections();
        server.close();
      },
    };
  },
  async statsd(directory, count) {
    const agent = await startLimited(directory, '{statsd: {tcp: 127.0.0.1:0}}');
    return { agent, close: await sendClients(agent, count) };
  },
  async logs(directory, count) {
    const log = join(directory, 'history.log');
    writeFileSync(log, '');
    for (let n = 0; n < count; n += 1000) {
      const lines = Array.from(
        { length: Math.min(1000, count - n) },
        (_, i) => `{"level":"info","logger":"shard-${n + i}","msg":"x"}\n`,
      );
      appendFileSync(log, lines.join(''));
    }
    const agent = await startLimited(directory, `{logs: {paths: [${log}], startAt: beginning}}`);
    await waitForTotal(agent, 'svc_log_entries_total', count);
    return { agent, close() {} };
  },
};

for (const [name, feed] of isMillionAlone ? [] : Object.entries(feeds)) {
  let base = 0;
  for (const factor of factors) {
    const directory = mkdtempSync(join(tmpdir(), 'svc-agent-limits-'));
    try {
      const { agent, close } = await feed(directory, limit * factor);
      const { cpuSeconds } = usageOf(agent.pid);
      await pause(8_000);
      const { anonymousMiB, peakMiB } = usageOf(agent.pid);
      if (factor === 1) base = anonymousMiB;
      process.stdout.write(
        `${name.padEnd(7)} ${String(factor).padStart(3)} x ${limit}: private ${anonymousMiB.toFixed(0)} MiB (${(anonymousMiB - base).toFixed(0)} more than at the limit), resident peak ${peakMiB.toFixed(0)} MiB, ${cpuSeconds.toFixed(1)} CPU s\n`,
      );
      await agent.end();
      close();
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }
}
for (let run = 0; run < millionRuns; run++) await million();
