/**
 * Measures whole processes that relay a page of 100,000 series: the built agent scrapes it and is scraped, vmagent scrapes it and
 * remote-writes into a sink. Prints CPU seconds per round and peak memory, in one run. `npm run bench -- relay [ROUNDS]`, default
 * 15; AGENT_FLAGS: flags of the agent's Node.
 */
import { get } from 'node:http';
import { numberAt } from './arguments.ts';
import {
  configIn,
  hasCommand,
  newPlace,
  pause,
  serve,
  startAgent,
  startVmagent,
  type Usage,
  usageOf,
} from './process.ts';

const rounds = numberAt(0, 'ROUNDS', 15);
const seriesCount = 100_000;
const place = newPlace('relay');

/** A page whose counters all rise from round to round, like the counters of a service: a fall would be a restart. */
function risingPage(): () => Buffer {
  const text = [
    '# HELP svc_persistence_requests Calls to the store.\n# TYPE svc_persistence_requests counter\n',
  ];
  const roundAt: number[] = [];
  let length = text[0]!.length;
  for (let n = 0; n < seriesCount; n++) {
    const labels = `operation="PersistenceOperation${n % 50}",domain="domain-${n % 997}",tasklist="tasklist-${n % 4999}",shard_group="${n}"`;
    const line = `svc_persistence_requests{${labels}} 10${`${n * 17}`.padStart(7, '0')}\n`;
    roundAt.push(length + line.length - 10);
    length += line.length;
    text.push(line);
  }
  const page = Buffer.from(text.join(''));
  let round = 10;
  return () => {
    round = round === 99 ? 10 : round + 1;
    for (const at of roundAt) {
      page[at] = 0x30 + Math.floor(round / 10);
      page[at + 1] = 0x30 + (round % 10);
    }
    return Buffer.from(page);
  };
}

let served = 0;
const nextPage = risingPage();
const port = await serve((_request, response) => {
  served += 1;
  const body = nextPage();
  response
    .writeHead(200, { 'content-type': 'text/plain; version=0.0.4', 'content-length': body.length })
    .end(body);
});

const fetched = (url: string) =>
  new Promise<number>((resolve, reject) => {
    get(url, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => (bytes += chunk.length)).on('end', () => resolve(bytes));
    }).on('error', reject);
  });

interface Rate extends Usage {
  perRound: number;
}

const between = (before: Usage, after: Usage, times: number): Rate => ({
  ...after,
  perRound: (after.cpuSeconds - before.cpuSeconds) / times,
});

async function agent(): Promise<Rate> {
  const config = configIn(
    place,
    `limits: {seriesPerMetric: 200000, series: 300000}
admin: ~
services: {history: {scrape: {url: 'http://127.0.0.1:${port}/metrics', interval: 60s, timeout: 30s}}}
`,
  );
  const { child, pid, address } = await startAgent(config);
  const page = `http://${address('metrics')}/metrics?service=history`;
  // The first rounds learn the page; the steady state is measured.
  while ((await fetched(page)) < 5e6) await pause(1_100);
  await pause(1_100);
  await fetched(page);
  const before = usageOf(pid);
  for (let round = 0; round < rounds; round++) {
    await pause(1_050);
    await fetched(page);
  }
  const rate = between(before, usageOf(pid), rounds);
  child.kill('SIGKILL');
  return rate;
}

async function vmagent(): Promise<Rate> {
  const { pid } = await startVmagent(place, '1s', [port]);
  await pause(5_000);
  const [before, servedBefore] = [usageOf(pid!), served];
  await pause(rounds * 1_000);
  return between(before, usageOf(pid!), served - servedBefore);
}

const print = (name: string, { perRound, peakMiB }: Rate) =>
  console.log(
    `${name.padEnd(8)} ${perRound.toFixed(3)} CPU s a round of ${seriesCount} series, peak ${peakMiB.toFixed(0)} MiB`,
  );

const ours = await agent();
print('agent', ours);
if (hasCommand('vmagent')) {
  const theirs = await vmagent();
  print('vmagent', theirs);
  console.log(
    `ratio    vmagent takes ${(theirs.perRound / ours.perRound).toFixed(1)} times the agent's CPU and ${(theirs.peakMiB / ours.peakMiB).toFixed(1)} times its memory`,
  );
} else console.log('vmagent is not installed: no comparison');
