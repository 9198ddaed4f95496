import { spawn } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bySize } from '../size.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { folder, mainFile, type RunningAgent, start, startAgent } from './process.ts';

/** Kills per case and seeds. */
const kills = bySize({ short: 1, long: 4, nightly: 300 });
const seeds = bySize({ short: 1, long: 1, nightly: 3 });
const olderGenerations = 400;
const keptGenerations = olderGenerations + 100;
/** How far the agent may be behind when it is killed: on a busy machine it would never see files before they are deleted. */
const generationsBehind = 40;
/** How far it may be behind while the service is still rotated. */
const generationsUnseen = 80;
/** Longest time that an agent runs before it is killed, and that it is down after some of the kills. */
const runningMs = 700;
const downMs = 1_200;
/** A busy machine takes its time. */
const patience = { withinMs: 1_200_000 };

type Style = 'rename' | 'rename, gzip in the background' | 'dated names' | 'copytruncate' | 'swung links';
const styles: Style[] = [
  'rename',
  'rename, gzip in the background',
  'dated names',
  'copytruncate',
  'swung links',
];

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A service that writes and is rotated four times a second beside older generations. */
function createService(directory: string, style: Style, random: () => number) {
  const log = join(directory, 'app.log');
  const written = new Map<string, number>();
  const name = (n: number) => `${log}.${n}`;
  const dated = (n: number) => `${log}-${20200000 + n}`;
  const target = (n: number) => join(directory, `service-${n}.txt`);
  let generation = 1;
  let isCompressing = false;
  /** The newest generation that the agent is known to have read. */
  let seen = 1;
  let fd: number;

  const older = '{"level":"info","generation":"older","msg":"long ago"}\n';
  for (let n = 1; n <= olderGenerations; n++) {
    const path = style === 'dated names' ? dated(n) : style === 'swung links' ? target(n) : name(n);
    writeFileSync(path, `${older.repeat(1 + (n % 7))}{"level":"info","generation":"older","n":${n}}\n`);
    utimesSync(path, 1_700_000_000 - n, 1_700_000_000 - n);
  }
  if (style === 'swung links') {
    fd = openSync(target(olderGenerations + 1), 'a');
    symlinkSync(target(olderGenerations + 1), log);
  } else fd = openSync(log, 'a');

  const write = () => {
    const lines = 5 + Math.floor(random() * 30);
    let text = '';
    for (let i = 0; i < lines; i++) {
      text += `{"level":"info","ts":"${new Date().toISOString()}","generation":"${generation}","msg":"${'x'.repeat(Math.floor(random() * 90))}"}\n`;
    }
    writeSync(fd, text);
    written.set(String(generation), (written.get(String(generation)) ?? 0) + lines);
  };

  const reopen = (path: string) => {
    const next = openSync(path, 'a');
    if (random() < 0.5) write();
    closeSync(fd);
    fd = next;
    generation++;
  };

  const makeRoom = () => {
    for (const suffix of ['', '.gz']) rmSync(name(keptGenerations) + suffix, { force: true });
    for (let n = keptGenerations - 1; n > 0; n--) {
      for (const suffix of ['', '.gz']) {
        if (existsSync(name(n) + suffix)) renameSync(name(n) + suffix, name(n + 1) + suffix);
      }
    }
  };

  const compress = (path: string) => {
    isCompressing = true;
    spawn('gzip', ['-f', path], { stdio: 'ignore' }).on('close', () => {
      isCompressing = false;
    });
  };

  const rotate = () => {
    if (isCompressing || generation - seen >= generationsUnseen) return;
    if (style === 'copytruncate') {
      makeRoom();
      copyFileSync(log, name(1));
      truncateSync(log);
      generation++;
    } else if (style === 'swung links') {
      const next = target(olderGenerations + 1 + generation);
      reopen(next);
      symlinkSync(next, `${log}.tmp`);
      renameSync(`${log}.tmp`, log);
    } else if (style === 'dated names') {
      renameSync(log, dated(olderGenerations + generation));
      reopen(log);
    } else {
      makeRoom();
      renameSync(log, name(1));
      reopen(log);
      if (style !== 'rename') compress(name(1));
    }
  };

  let timer: NodeJS.Timeout;
  let nextRotation = performance.now() + 250;
  const run = () => {
    write();
    if (performance.now() >= nextRotation) {
      nextRotation += 250;
      rotate();
    }
    timer = setTimeout(run, 15);
  };
  write();
  return {
    log,
    written,
    run,
    generation: () => generation,
    stop: () => clearTimeout(timer),
    /** The agent has read up to this generation. While it is far behind, the service writes on and is not rotated. */
    sees: (newest: number) => {
      seen = newest;
    },
    async end() {
      clearTimeout(timer);
      await until('gzip ends', () => !isCompressing);
      // A whole last line, so that nothing is held back.
      appendFileSync(log, '');
      closeSync(fd);
    },
  };
}

async function countsOf(address: string): Promise<Map<string, number>> {
  const page = await (await fetch(`http://${address}/metrics`)).text();
  const found = page.matchAll(/^lines_by_generation(?:_total)?\{[^}]*generation="([^"]*)"[^}]*\} (\S+)$/gm);
  return new Map([...found].map(([, generation, value]) => [generation!, Number(value)]));
}

const differences = (wanted: ReadonlyMap<string, number>, counted: ReadonlyMap<string, number>) =>
  [...new Set([...wanted.keys(), ...counted.keys()])].flatMap((generation) => {
    const [want, count] = [wanted.get(generation) ?? 0, counted.get(generation) ?? 0];
    return want === count ? [] : [`generation ${generation}: ${count} of ${want}`];
  });

const tried = bySize({ short: styles.slice(1, 2), long: styles, nightly: styles });
const cases = tried.flatMap((style) => Array.from({ length: seeds }, (_, seed) => [style, seed] as const));

test.for(cases)(
  'killed while logs rotate: %s, seed %i',
  { timeout: 2 * patience.withinMs + kills * 60_000 },
  async ([style, seed], { annotate }) => {
    const place = folder();
    const random = seeded(20261122 + seed);
    const rules =
      'rules: [{name: lines_by_generation, type: counter, help: Lines, labels: {generation: generation}}]';
    const service = createService(place.path, style, random);
    const config = agentFile(place.path);
    writeFileSync(
      config,
      `stateDirectory: ${join(place.path, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
limits: {seriesPerMetric: 20000}
services:
  history: {logs: {paths: [${service.log}], startAt: beginning, ${rules}}}
`,
    );
    let agent: RunningAgent | undefined;
    let startMs = 0;
    const startUp = async () => {
      const beganMs = performance.now();
      agent = await startAgent(config);
      startMs = performance.now() - beganMs;
    };
    const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    /** Kills one that is ready, at a random moment. */
    const killRunning = async () => {
      await until('the agent catches up', hasCaughtUp, patience);
      await sleep(random() * runningMs);
      await agent!.end('SIGKILL');
    };
    /** Kills one anywhere from its first instruction until it has begun to read. */
    const killStarting = async () => {
      const starting = start(process.execPath, [mainFile, 'run', '-c', config]);
      await sleep(random() * 1.3 * startMs);
      await starting.end('SIGKILL');
    };
    const hasCaughtUp = async () => {
      const counted = await countsOf(agent!.address('metrics'));
      const newest = Math.max(0, ...[...counted.keys()].map((name) => Number(name) || 0));
      service.sees(newest);
      return service.generation() - newest < generationsBehind;
    };
    let killedAtStart = 0;
    try {
      await startUp();
      service.run();
      for (let kill = 0; kill < kills; kill++) {
        if (kill > 0 && random() < 0.4) {
          killedAtStart++;
          await killStarting();
        } else {
          if (kill > 0) await startUp();
          await killRunning();
        }
        if (random() < 0.2) await sleep(random() * downMs);
      }
      await startUp();
      await service.end();
      const address = agent!.address('metrics');
      let last: string[] = [];
      await until(
        'every generation is counted',
        async () => {
          last = differences(service.written, await countsOf(address));
          return last.length === 0;
        },
        patience,
      ).catch(() => {});
      const lines = [...service.written.values()].reduce((sum, n) => sum + n, 0);
      await annotate(
        `${kills} kills, ${killedAtStart} of them at the start, ${service.written.size} generations, ${lines} lines`,
      );
      expect(last.length > 0 ? `${last.slice(0, 20).join('\n')}\n${agent!.output().slice(-3000)}` : '').toBe(
        '',
      );
    } finally {
      service.stop();
      await agent?.end();
      place.remove();
    }
  },
);
