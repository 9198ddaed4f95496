import { execFileSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openLogSink } from '../../src/agent/own-log.ts';
import { type RunningAgent, startAgent } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
import { until } from '../until.ts';

// The agent's own log cannot be written: its disk is full, or nobody reads its pipe.

let place: string;
let agent: RunningAgent | undefined;
beforeEach(() => {
  place = newFolder();
});
afterEach(() => agent?.end('SIGKILL'));

test('on a full disk the agent counts lost entries, reloads, and stops when it is told to', async () => {
  const file = join(place, 'agent.yaml');
  const configure = (log: object) =>
    writeFileSync(
      file,
      JSON.stringify({
        stateDirectory: join(place, 'state'),
        roles: ['history'],
        services: { history: { logs: { paths: [join(place, 'none.log')] } } },
        metrics: { pullmetrics: { listenAddress: '127.0.0.1:0' } },
        admin: { listenAddress: '127.0.0.1:0' },
        log,
      }),
    );
  const other = join(place, 'other.log');
  configure({});
  const running = await startAgent(file);
  agent = running;
  const lost = async () => {
    const page = await (await fetch(`http://${running.address('metrics')}/metrics`)).text();
    return Number(/^svc_agent_dropped_total\{.*reason="log_write".*\} (\S+)$/m.exec(page)?.[1] ?? 0);
  };
  const reload = (log: object) => {
    configure(log);
    running.child.kill('SIGHUP');
  };
  reload({ outputFile: '/dev/full' });
  const before = await until('entries are lost', async () => (await lost()) || undefined);
  reload({ outputFile: other });
  await until('entries elsewhere', () => existsSync(other) && statSync(other).size > 0);
  reload({ outputFile: '/dev/full' });
  await until('more are lost', async () => (await lost()) > before);
  running.child.kill('SIGTERM');
  expect(await running.ended).toBe(0);
});

test('entries for a full pipe are lost and reported; a torn one ends before the next', () => {
  const path = join(place, 'pipe');
  execFileSync('mkfifo', [path]);
  const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  let lost = 0;
  const sink = openLogSink(pipe, () => lost++);
  const entry = (n: number) => `${n}:${'x'.repeat(10_000)}\n`;
  for (let n = 0; n < 10; n++) sink.write(entry(n));
  const taken = Buffer.alloc(1 << 20);
  const first = taken.toString('utf8', 0, readSync(pipe, taken));
  expect(lost).toBeGreaterThan(0);
  sink.write('last\n');
  const lines = (first + taken.toString('utf8', 0, readSync(pipe, taken))).split('\n');
  const whole = lines.filter((line) => line.length === 10_002);
  expect(whole).toHaveLength(10 - lost);
  expect(lines.slice(-2)).toEqual(['last', '']);
  closeSync(pipe);
});
