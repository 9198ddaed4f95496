/**
 * Measures statsd lines: the reader against a plain split parser on the same datagrams in the same run, then datagrams over
 * loopback from a separate sender, with the loss that the kernel counted. `npm run bench -- statsd`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '../src/core/clock.ts';
import type { Log } from '../src/core/ports.ts';
import { createRegistry } from '../src/core/registry/registry.ts';
import { defaultBounds } from '../src/core/registry/value-stores.ts';
import { createVocabularyDetector } from '../src/core/vocabulary-detector.ts';
import { createKnownLines } from '../src/sources/statsd/lines/known-lines.ts';
import { tagKeysWith } from '../src/sources/statsd/lines/line-format.ts';
import { createLineReader } from '../src/sources/statsd/lines/line-reader.ts';
import { createSeriesRecorder } from '../src/sources/statsd/lines/statsd-series.ts';
import { createStatsd } from '../src/sources/statsd/source.ts';
import { cpuMs, median } from './figures.ts';
import { pause } from './process.ts';

const types = ['c', 'ms', 'g', 'h'] as const;
const operations = 250;
const limits = { seriesPerMetric: 100_000, series: 200_000, forbiddenTags: [], allowValues: [] };

/** A line of about 73 bytes; 1,000 series in all. */
function lineOf(n: number): string {
  const type = types[n % 4]!;
  const operation = `Operation${Math.floor(n / 4) % operations}`;
  return `service.persistence.m${type}:${(n % 977) + 0.5}|${type}|#operation:${operation},shard_group:a`;
}

/** Packs lines into datagrams of at most `bytes` bytes. */
function pack(bytes: number, lines: number): Buffer[] {
  const datagrams: Buffer[] = [];
  let text = '';
  for (let n = 0; n < lines; n++) {
    const line = lineOf(n);
    if (text !== '' && text.length + line.length + 1 > bytes) {
      datagrams.push(Buffer.from(text));
      text = '';
    }
    text += text === '' ? line : `\n${line}`;
  }
  return [...datagrams, Buffer.from(text)];
}

/** Parses like a short program would: split, a map by the text of the series. */
function plainRead(datagram: Buffer, into: Map<string, number>): void {
  for (const line of datagram.toString('latin1').split('\n')) {
    const colon = line.indexOf(':');
    const [number, type, ...rest] = line.slice(colon + 1).split('|');
    const key = `${line.slice(0, colon)}|${type}|${rest.join('|')}`;
    into.set(key, type === 'g' ? Number(number) : (into.get(key) ?? 0) + Number(number));
  }
}

function openReader() {
  const registry = createRegistry({ limits }, { clock: systemClock });
  const intake = registry.intake({
    service: 'frontend',
    component: 'statsd',
    relayed: true,
    rank: 0,
    store: registry.immediate,
    globalTags: {},
    received: true,
    tagService: true,
  });
  const recorder = createSeriesRecorder({
    intake,
    detector: createVocabularyDetector([], true),
    bounds: defaultBounds,
  });
  const rules = { tagFormat: 'auto', tagKeys: tagKeysWith(), prefixes: [] } as const;
  const knownLines = createKnownLines({
    rules,
    recorder,
    lineBytes: 8192,
    onName() {},
    isSettled: () => true,
  });
  const reader = createLineReader({ knownLines, recorder, lineBytes: 8192, refuse() {} });
  return { registry, intake, reader };
}

/** Millions of lines per CPU-second of both parsers, in turns. */
function compare(datagrams: Buffer[], lines: number) {
  const { reader } = openReader();
  const plain = new Map<string, number>();
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < 9; round++) {
    let before = process.cpuUsage();
    for (const datagram of datagrams) reader.read(datagram, 0, datagram.length, Number.POSITIVE_INFINITY);
    const ownMs = cpuMs(before);
    before = process.cpuUsage();
    for (const datagram of datagrams) plainRead(datagram, plain);
    if (round < 2) continue;
    ours.push(lines / ownMs / 1e3);
    theirs.push(lines / cpuMs(before) / 1e3);
  }
  return {
    ours: Number(median(ours).toFixed(2)),
    plain: Number(median(theirs).toFixed(2)),
    ratio: Number((median(ours) / median(theirs)).toFixed(1)),
  };
}

/**
 * Sends `perSecond` datagrams for `seconds`, in a burst every 2 ms, then says how many were sent and exits. A sender that was
 * delayed does not catch up at once: a burst is at most the lines of 20 ms.
 */
const sender = `
const [port, perSecond, seconds] = process.argv.slice(1).map(Number);
const datagrams = JSON.parse(require('node:fs').readFileSync(0, 'utf8')).map((text) => Buffer.from(text));
const socket = require('node:dgram').createSocket({ type: 'udp4', sendBufferSize: 4194304 });
socket.connect(port, '127.0.0.1', () => {
  let start = performance.now();
  const total = perSecond * seconds;
  let sent = 0;
  let failed = 0;
  const burst = () => {
    const lateMs = performance.now() - start - (sent / perSecond) * 1000;
    if (lateMs > 20) start += lateMs - 20;
    const due = Math.min(total, Math.floor(((performance.now() - start) / 1000) * perSecond));
    for (; sent < due; sent++) socket.send(datagrams[sent % datagrams.length], (error) => { if (error) failed++; });
    if (sent < total) setTimeout(burst, 2);
    else setTimeout(() => { process.stdout.write(JSON.stringify({ sent: sent - failed })); process.exit(0); }, 200);
  };
  burst();
});
`;

const silent: Log = { write() {}, named: () => silent };

interface Paced {
  datagrams: Buffer[];
  perSecond: number;
  seconds: number;
}

async function run({ datagrams, perSecond, seconds }: Paced, port: string): Promise<number> {
  const args = ['-e', sender, port, String(perSecond), String(seconds)];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(datagrams.map(String)));
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  await once(child, 'exit');
  return (JSON.parse(out) as { sent: number }).sent;
}

async function receive(paced: Paced) {
  const { registry, intake } = openReader();
  const kernel = { drops: 0 };
  const statsd = createStatsd(
    { listen: '127.0.0.1:0', senders: [], receiveBufferBytes: 4 * 1024 * 1024 },
    {
      name: 'bench',
      intake,
      detector: createVocabularyDetector([], true),
      onKernelDrops(more) {
        kernel.drops += more;
      },
      drops: registry.drops,
      log: silent,
      clock: systemClock,
    },
  );
  const stop = await statsd.start();
  const port = statsd.status().addresses.listen!.split(':').at(-1)!;
  // A role does not begin at its full pace, and the cost of a cold start is not measured here.
  const warming = await run({ ...paced, perSecond: paced.perSecond / 10, seconds: 1 }, port);
  await pause(100);
  statsd.pollKernelDrops();
  const warm = { ...statsd.status(), lost: warming - statsd.status().datagrams };
  kernel.drops = 0;
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const before = process.cpuUsage();
  const startMs = performance.now();
  const sent = await run(paced, port);
  await pause(300);
  const wallSeconds = (performance.now() - startMs) / 1000 - 0.5;
  const cpu = cpuMs(before) / 1000;
  statsd.pollKernelDrops();
  const datagrams = statsd.status().datagrams - warm.datagrams;
  const lines = statsd.status().lines - warm.lines;
  await stop();
  return {
    sentPerSecond: Math.round(sent / paced.seconds),
    linesPerSecond: Math.round(lines / paced.seconds),
    lostWhileWarmingUp: warm.lost,
    lost: sent - datagrams,
    lostByTheKernelsFigure: kernel.drops,
    longestStallMs: Math.round(delay.max / 1e6),
    core: Number((cpu / Math.min(wallSeconds, paced.seconds + 1)).toFixed(2)),
    linesPerCpuSecond: Math.round(lines / cpu),
  };
}

const lines = 200_000;
const short = Array.from({ length: 1000 }, (_, n) => Buffer.from(lineOf(n)));
const figures = {
  millionLinesPerCpuSecond: {
    '1400 byte datagrams': compare(pack(1400, lines), lines),
    'one line each': compare(
      Array.from({ length: lines }, (_, n) => Buffer.from(lineOf(n))),
      lines,
    ),
  },
  overLoopback: {
    'one line, 50,000/s': await receive({ datagrams: short, perSecond: 50_000, seconds: 5 }),
    '1400 bytes, 50,000/s': await receive({ datagrams: pack(1400, 4000), perSecond: 50_000, seconds: 5 }),
    'one line, 100,000/s': await receive({ datagrams: short, perSecond: 100_000, seconds: 5 }),
  },
};
process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
