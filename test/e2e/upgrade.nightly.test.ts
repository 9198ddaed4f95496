import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { root } from '../unit/house/imports.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { mainFile, start } from './process.ts';

const place = newFolder(afterAll);
const git = (...args: string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });

/** The last commit of version 0.1.0; empty if the history is not there. */
const bump = git('log', '-1', '--format=%H', '-S"version": "0.1.0"', '--', 'package.json').stdout?.trim();
const lastOld = bump ? git('rev-parse', '--verify', `${bump}^`).stdout.trim() : '';

/** The program of a commit, built with the packages of this one. */
function built(commit: string): string {
  const old = join(place, 'old');
  mkdirSync(old);
  const archive = join(place, 'old.tar');
  expect(git('archive', '--output', archive, commit).status).toBe(0);
  expect(spawnSync('tar', ['-xf', archive, '-C', old]).status).toBe(0);
  symlinkSync(join(root, 'node_modules'), join(old, 'node_modules'));
  const { status, stderr } = spawnSync(process.execPath, ['scripts/build.mjs'], {
    cwd: old,
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
  return join(old, 'dist/main.js');
}

const line = `${JSON.stringify({ level: 'info', logger: 'shard', ts: '2026-01-01T00:00:00Z', msg: 'x' })}\n`;
const total = async (address: string) => {
  const page = await (await fetch(`http://${address}/metrics`)).text();
  return Number(/^svc_log_entries_total\{.*level="info",logger="shard".*\} (\d+)$/m.exec(page)?.[1] ?? 0);
};

/** Runs a program, writes a line, and waits until the total is `wanted`. */
async function played(program: string, file: string, log: string, wanted: number) {
  const agent = start(process.execPath, [program, 'run', '-c', file]);
  const address = await until(
    'the agent listens',
    () => /"listener":"metrics","address":"([^"]+)"/.exec(agent.output())?.[1],
  );
  await until('the agent is ready', () => agent.output().includes('"msg":"ready"'));
  appendFileSync(log, line);
  await until(`the total is ${wanted}`, async () => (await total(address)) === wanted);
  expect(await agent.end(), agent.output()).toBe(0);
  expect(agent.output()).not.toMatch(/"level":"error"/);
}

test.skipIf(lastOld === '')(
  'from 0.1.0 to this version totals go on; the way back with the saved state counts each line once',
  async () => {
    const old = built(lastOld);
    const log = join(place, 'history.log');
    const [state, saved] = [join(place, 'state'), join(place, 'saved')];
    writeFileSync(log, line);
    const file = agentFile(place, { logs: `${log}*` });
    await played(old, file, log, 2);
    cpSync(state, saved, { recursive: true });
    // The total goes on, but positions of 0.1.0 are not read: the file is new, and begins where startAt says.
    await played(mainFile, file, log, 2 + 3);
    await played(mainFile, file, log, 2 + 4);
    rmSync(state, { recursive: true });
    renameSync(saved, state);
    await played(old, file, log, 5);
  },
);
