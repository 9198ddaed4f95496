import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { folder } from '../../run-folder.ts';
import { anyMoment, until } from '../../until.ts';
import { agentFile } from '../agent-file.ts';
import { mainFile, type RunningAgent, start, startAgent } from '../process.ts';

/** A service that writes lines with the label of their generation while its log is rotated. */
export interface RotatedService {
  /** The patterns with which the agent finds the log. */
  readonly paths: readonly string[];
  /** The number of lines by generation. */
  readonly written: ReadonlyMap<string, number>;
  run(): void;
  generation(): number;
  /** Tells the service that the agent has read up to this generation. While it is far behind, the service is not rotated. */
  sees(newest: number): void;
  stop(): void;
  /** Ends the last line and whatever runs in the background. */
  end(): Promise<void>;
}

export type OpenService = (directory: string, random: () => number) => RotatedService;

/**
 * How far the agent may be behind when it is killed: on a busy machine it would otherwise never see files before they are
 * deleted.
 */
const generationsBehind = 40;
/** How far the agent may be behind while the service is still rotated. */
export const generationsUnseen = 80;
/** The longest times for which an agent runs before it is killed, and for which it is down after some of the kills. */
const runningMs = 700;
const downMs = 1_200;
/** After this long without a change a wrong count stays wrong. */
const settledMs = 60_000;
/** A limit for a busy machine. */
const patience = { withinMs: 1_200_000 };

/** The time limit that ends a hanging run. */
export const timeoutOf = (kills: number): number => 2 * patience.withinMs + kills * 60_000;

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A line of the service, with random padding. */
export const lineOf = (generation: number | string, random: () => number): string =>
  `{"level":"info","ts":"${new Date().toISOString()}","generation":"${generation}","msg":"${'x'.repeat(Math.floor(random() * 90))}"}`;

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

/** Starts and kills agents of one configuration. */
function createVictim(config: string, service: RotatedService, random: () => number) {
  let agent: RunningAgent | undefined;
  let startMs = 0;
  const counts = () => countsOf(agent!.address('metrics'));
  const hasCaughtUp = async () => {
    const newest = Math.max(0, ...[...(await counts()).keys()].map((name) => Number(name) || 0));
    service.sees(newest);
    return service.generation() - newest < generationsBehind;
  };
  return {
    counts,
    output: () => agent!.output(),
    async start() {
      const beganMs = performance.now();
      agent = await startAgent(config);
      startMs = performance.now() - beganMs;
    },
    /** Kills an agent that is ready, at a random moment. */
    async killRunning() {
      await until('the agent catches up', hasCaughtUp, patience);
      await anyMoment(random, runningMs);
      await agent!.end('SIGKILL');
    },
    /** Kills an agent at any moment from its first instruction until it has begun to read. */
    async killStarting() {
      const starting = start(process.execPath, [mainFile, 'run', '-c', config]);
      await anyMoment(random, 1.3 * startMs);
      await starting.end('SIGKILL');
    },
    end: async () => void (await agent?.end()),
  };
}

function configure(directory: string, paths: readonly string[]): string {
  const config = agentFile(directory);
  const rules =
    'rules: [{name: lines_by_generation, type: counter, help: Lines, labels: {generation: generation}}]';
  writeFileSync(
    config,
    `stateDirectory: ${join(directory, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
limits: {seriesPerMetric: 20000}
services:
  history: {logs: {paths: ${JSON.stringify(paths)}, startAt: beginning, ${rules}}}
`,
  );
  return config;
}

/** Kills the agent again and again, expects every generation to be counted, and returns what happened. */
export async function killWhileRotating(open: OpenService, seed: number, kills: number): Promise<string> {
  const place = folder();
  const random = seeded(20261122 + seed);
  const service = open(place.path, random);
  const victim = createVictim(configure(place.path, service.paths), service, random);
  let killedAtStart = 0;
  try {
    await victim.start();
    service.run();
    for (let kill = 0; kill < kills; kill++) {
      if (kill > 0 && random() < 0.4) {
        killedAtStart++;
        await victim.killStarting();
      } else {
        if (kill > 0) await victim.start();
        await victim.killRunning();
      }
      if (random() < 0.2) await anyMoment(random, downMs);
    }
    await victim.start();
    await service.end();
    let last: string[] = [];
    let changedMs = performance.now();
    const isSettled = async () => {
      const next = differences(service.written, await victim.counts());
      if (next.join() !== last.join()) changedMs = performance.now();
      last = next;
      return last.length === 0 || performance.now() - changedMs > settledMs;
    };
    await until('every generation is counted, or nothing changes', isSettled, patience);
    const lines = [...service.written.values()].reduce((sum, n) => sum + n, 0);
    expect(last.length > 0 ? `${last.slice(0, 20).join('\n')}\n${victim.output().slice(-3000)}` : '').toBe(
      '',
    );
    return `${kills} kills, ${killedAtStart} of them at the start, ${service.written.size} generations, ${lines} lines`;
  } finally {
    service.stop();
    await victim.end();
    place.remove();
  }
}
