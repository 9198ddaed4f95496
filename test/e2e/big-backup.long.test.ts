import { once } from 'node:events';
import { createWriteStream, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createGzip } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { bySize } from '../size.ts';
import { until } from '../until.ts';
import { writeAgentFile } from './agent-file.ts';
import { type RunningAgent, startAgent } from './process.ts';

// A big dump is verified at `full` in a process beside the agent. The nightly run has the size in the documentation.

const megabytes = bySize({ short: 30, long: 200, nightly: 2048 });
const place = newFolder(afterAll);
const dump = join(place, 'big1.sql.gz');

/** Writes a dump in SQL with this many megabytes before compression. Every line is different, so that gzip has work to do. */
async function writeDump(path: string, megabytes: number): Promise<void> {
  const gzip = createGzip({ level: 1 });
  const file = createWriteStream(path);
  gzip.pipe(file);
  gzip.write('-- MySQL dump 10.19\n');
  let row = 0;
  for (let written = 0; written < megabytes; written++) {
    const lines: string[] = [];
    for (let bytes = 0; bytes < 1 << 20; bytes += 64) {
      row = (row * 1103515245 + 12345) % 2 ** 31;
      lines.push(`INSERT INTO executions VALUES (${row},'${row.toString(36).padEnd(20, 'x')}');`.padEnd(63));
    }
    if (!gzip.write(`${lines.join('\n')}\n`)) await once(gzip, 'drain');
  }
  gzip.end('-- Dump completed on 2026-01-01  2:00:00\n');
  await once(file, 'close');
}

let agent: RunningAgent;
beforeAll(async () => {
  const file = writeAgentFile(
    place,
    `stores: [{name: main, kind: mysql, address: '127.0.0.1:1', databases: {persistence: svc}}]
backups:
  - name: nightly
    store: main
    database: persistence
    type: full
    source: {files: {directory: ${place}, pattern: '^big.*\\.gz$', settle: 1s}}
    integrity: {level: full, bytesPerSecond: ${1 << 30}}
    interval: 500ms
`,
  );
  agent = await startAgent(file);
});
afterAll(() => agent?.end());

test(`a dump of ${megabytes} MB is verified without the agent itself reading it, and scrapes are answered`, async () => {
  // The threads are counted: the figure of the whole process includes what its children have read.
  const threads = `/proc/${agent.child.pid}/task`;
  const readBytes = () =>
    readdirSync(threads)
      .map((id) => Number(/^rchar: (\d+)/m.exec(readFileSync(join(threads, id, 'io'), 'utf8'))![1]))
      .reduce((sum, bytes) => sum + bytes, 0);
  const scrape = async () => {
    const response = await fetch(`http://${agent.address('metrics')}/metrics`);
    expect(response.status).toBe(200);
    return response.text();
  };
  const verifying = () => readFileSync(`${threads}/${agent.child.pid}/children`, 'utf8').trim() !== '';
  const before = readBytes();
  await writeDump(dump, megabytes);
  const dumpBytes = statSync(dump).size;
  let scrapesBeside = 0;
  // The verification has the lowest priority, so a busy machine leaves it little time.
  const verified = async () => {
    const page = await scrape();
    if (verifying()) scrapesBeside++;
    const isFull = /^svc_backup_integrity_ok\{[^}]*level="full"[^}]*\} 1$/m.test(page);
    return isFull && page.includes(`} ${dumpBytes}\n`);
  };
  await until('the dump is verified', verified, { withinMs: 540_000 });
  expect(scrapesBeside).toBeGreaterThan(0);
  expect(readBytes() - before).toBeLessThan(dumpBytes / 2);
}, 600_000);
