/**
 * Reads the same log file with the built agent and with mtail and an equivalent program: CPU seconds and peak memory of whole
 * processes, with their counts compared. `npm run bench -- tail [MB]`, default 512.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { numberAt } from './arguments.ts';
import { sumOn, textOf } from './figures.ts';
import { logLines, type Shape, shapes } from './lines.ts';
import {
  configIn,
  hasCommand,
  hasEnded,
  launch,
  newPlace,
  pause,
  startAgent,
  type Usage,
  usageOf,
} from './process.ts';

const megabytes = numberAt(0, 'MEGABYTES', 512);
const place = newPlace('tail');

/** Writes a file of at least `bytes` that repeats one block; returns its number of lines. */
function writeLines(path: string, shape: Shape, bytes: number): number {
  const linesPerBlock = 50_000;
  const block = logLines(shape, linesPerBlock);
  const blocks = Math.ceil(bytes / block.length);
  const fd = openSync(path, 'w');
  for (let i = 0; i < blocks; i++) writeSync(fd, block);
  closeSync(fd);
  return blocks * linesPerBlock;
}

interface Counted extends Usage {
  entries: number;
}

/** Reads the sum of a counter from the page of a process until it has reached the wanted value. */
async function whenCounted(
  child: ChildProcess,
  url: string,
  family: string,
  wanted: number,
): Promise<number> {
  const deadlineMs = performance.now() + 120_000;
  while (performance.now() < deadlineMs && !hasEnded(child)) {
    const sum = sumOn(await textOf(url), family);
    if (sum >= wanted) return sum;
    await pause(100);
  }
  throw new Error('the process ended, or did not count the lines within two minutes');
}

async function agent(log: string, lines: number): Promise<Counted> {
  const logs = `{paths: [${log}], startAt: beginning}`;
  const config = configIn(
    mkdtempSync(join(place, 'agent-')),
    `roles: [history]\nadmin: ~\nservices: {history: {logs: ${logs}}}\n`,
  );
  const { child, pid, address } = await startAgent(config);
  const url = `http://${address('metrics')}/metrics`;
  const entries = await whenCounted(child, url, 'svc_log_entries_total', lines);
  const usage = usageOf(pid);
  child.kill('SIGKILL');
  return { ...usage, entries };
}

/**
 * A program for mtail that counts levels, loggers and persistence errors, as the agent's default rules count them; no bytes,
 * drops or times.
 */
const program = `counter svc_log_entries_total by level, logger
counter svc_log_persistence_errors_total by level

/"level": ?"(?P<level>[a-z]+)".*"logger": ?"(?P<logger>[^"]*)"/ {
  svc_log_entries_total[$level][$logger]++
}
/"level": ?"(?P<level>error|fatal)".*"msg": ?"(Operation failed with internal error\\.|DBUnavailable Error:|Persistent store operation failure|Persistent fetch operation failure)"/ {
  svc_log_persistence_errors_total[$level]++
}
`;

/** Runs mtail in one-shot mode: it reads to the end, prints, ends. */
async function mtail(log: string, lines: number): Promise<Counted> {
  const directory = mkdtempSync(join(place, 'mtail-'));
  const programFile = join(directory, 'svc.mtail');
  writeFileSync(programFile, program);
  const options = `--one_shot --one_shot_format=prometheus --progs ${programFile} --logs ${log} --logtostderr`;
  const child = launch('mtail', options.split(' '), { stdio: ['ignore', 'pipe', 'ignore'] });
  let page = '';
  let usage = usageOf(child.pid!);
  const sampling = setInterval(() => {
    try {
      const seen = usageOf(child.pid!);
      // A process that has just ended has a state, but no memory.
      if (!Number.isNaN(seen.peakMiB)) usage = seen;
    } catch {
      clearInterval(sampling);
    }
  }, 10);
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (page += text));
  const status = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(sampling);
  if (status !== 0) throw new Error(`mtail ended with ${status}`);
  const entries = sumOn(page, 'svc_log_entries_total');
  if (entries === 0 && lines > 0) throw new Error('mtail counted nothing');
  return { ...usage, entries };
}

const hasMtail = hasCommand('mtail');

async function compare(shape: Shape, megabytesOfShape: number): Promise<void> {
  const log = join(place, `${shape}.log`);
  const lines = writeLines(log, shape, megabytesOfShape * 1e6);
  const size = statSync(log).size / 1e6;
  const ours = await agent(log, lines);
  const perSecond = (usage: Counted) => size / usage.cpuSeconds;
  const row = (name: string, usage: Counted) =>
    console.log(
      `${shape.padEnd(8)} ${name.padEnd(6)} ${size.toFixed(0).padStart(5)} MB  ${usage.cpuSeconds.toFixed(2).padStart(6)} CPU s  ${perSecond(usage).toFixed(0).padStart(5)} MB/CPU s  peak ${usage.peakMiB.toFixed(0)} MiB  ${usage.entries} entries of ${lines}`,
    );
  row('agent', ours);
  if (hasMtail) {
    const theirs = await mtail(log, lines);
    row('mtail', theirs);
    console.log(
      `${shape.padEnd(8)} ratio  ${(perSecond(ours) / perSecond(theirs)).toFixed(1)} times mtail's rate per CPU second`,
    );
  }
  rmSync(log);
}

if (!hasMtail) console.log('mtail is not installed: no comparison');
for (const shape of shapes) await compare(shape, shape === 'flat' ? megabytes : Math.min(megabytes, 128));
