/**
 * Measures the private memory of the built agent at 1, 10 and 100 times the limit of series per metric, for pages, statsd and
 * logs: refused series must cost next to nothing. Then a million values of a tag are sent over TCP, and CPU seconds and private
 * memory above the idle agent are measured. `npm run bench -- limits [LIMIT]`, default 2000; `limits million [RUNS]` for the last
 * part alone.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { numberAt, textAt } from './arguments.ts';
import { sumOn, textOf } from './figures.ts';
import {
  configIn,
  newPlace,
  pause,
  type RunningAgent,
  serve,
  startAgent,
  stopped,
  usageOf,
} from './process.ts';

const isMillionAlone = textAt(0) === 'million';
const limit = isMillionAlone ? 2000 : numberAt(0, 'LIMIT', 2000);
const millionRuns = isMillionAlone ? numberAt(1, 'RUNS', 5) : 1;
const factors = [1, 10, 100];

const startLimited = (directory: string, service: string): Promise<RunningAgent> =>
  startAgent(
    configIn(directory, `limits: {seriesPerMetric: ${limit}}\nadmin: ~\nservices: {history: ${service}}\n`),
  );

/** Feeds `count` distinct series and returns when the agent shows all of them, one by one or summed up. */
type Feed = (directory: string, count: number) => Promise<RunningAgent>;

async function waitForTotal({ address }: RunningAgent, name: string, total: number): Promise<void> {
  const url = `http://${address('metrics')}/metrics`;
  while (sumOn(await textOf(url), name) < total) await pause(300);
}

/** Sends a counter with `count` values of a tag, and returns when the agent shows all of them. */
async function sendClients(agent: RunningAgent, count: number): Promise<RunningAgent> {
  const [host, port] = agent.address('services.history.statsd.tcp').split(':');
  const socket = connect(Number(port), host);
  for (let n = 0; n < count; n += 1000) {
    const lines = Array.from(
      { length: Math.min(1000, count - n) },
      (_, i) => `requests:1|c|#client:c${n + i}\n`,
    );
    if (!socket.write(lines.join(''))) await new Promise((resolve) => socket.once('drain', resolve));
  }
  await waitForTotal(agent, 'requests', count);
  return agent;
}

async function million(): Promise<void> {
  const agent = await startLimited(newPlace('limits'), '{statsd: {tcp: 127.0.0.1:0}}');
  await pause(3_000);
  const idle = usageOf(agent.pid);
  let mostMiB = 0;
  const sampling = setInterval(() => {
    mostMiB = Math.max(mostMiB, usageOf(agent.pid).anonymousMiB);
  }, 50);
  await sendClients(agent, 1_000_000);
  const { cpuSeconds, anonymousMiB } = usageOf(agent.pid);
  clearInterval(sampling);
  process.stdout.write(
    `a million values of a tag: ${(cpuSeconds - idle.cpuSeconds).toFixed(2)} CPU s, private ${(anonymousMiB - idle.anonymousMiB).toFixed(1)} MiB above idle, at most ${(mostMiB - idle.anonymousMiB).toFixed(1)}\n`,
  );
  await stopped(agent.child);
}

const feeds: Record<string, Feed> = {
  async pages(directory, count) {
    const lines = Array.from({ length: count }, (_, n) => `requests{client="client-${n}"} 1`);
    const body = `# TYPE requests counter\n${lines.join('\n')}\n`;
    const port = await serve((_request, response) => response.end(body));
    const url = `http://127.0.0.1:${port}/metrics`;
    const agent = await startLimited(directory, `{scrape: {url: '${url}', interval: 2s, timeout: 2s}}`);
    await waitForTotal(agent, 'requests', count);
    return agent;
  },
  statsd: async (directory, count) =>
    sendClients(await startLimited(directory, '{statsd: {tcp: 127.0.0.1:0}}'), count),
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
    return agent;
  },
};

for (const [name, feed] of isMillionAlone ? [] : Object.entries(feeds)) {
  let base = 0;
  for (const factor of factors) {
    const { child, pid } = await feed(newPlace('limits'), limit * factor);
    const { cpuSeconds } = usageOf(pid);
    await pause(8_000);
    const { anonymousMiB, peakMiB } = usageOf(pid);
    if (factor === 1) base = anonymousMiB;
    process.stdout.write(
      `${name.padEnd(7)} ${String(factor).padStart(3)} x ${limit}: private ${anonymousMiB.toFixed(0)} MiB (${(anonymousMiB - base).toFixed(0)} more than at the limit), resident peak ${peakMiB.toFixed(0)} MiB, ${cpuSeconds.toFixed(1)} CPU s\n`,
    );
    await stopped(child);
  }
}
for (let run = 0; run < millionRuns; run++) await million();
