import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { root } from '../unit/house/imports.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { folder, mainFile, start } from './process.ts';

const place = folder();
afterAll(() => place.remove());
const git = (...args: string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });

/** The last commit of version 0.1.0, or nothing where the history is not there. */
const bump = git('log', '-1', '--format=%H', '-S"version": "0.1.0"', '--', 'package.json').stdout?.trim();
const last = bump ? git('rev-parse', '--verify', `${bump}^`).stdout.trim() : '';

/** The program of a commit, built with the packages of this one. */
function built(commit: string): string {
  const old = join(place.path, 'old');
  mkdirSync(old);
  const archive = join(place.path, 'old.tar');
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

test.skipIf(last === '')('from 0.1.0 to this version and back: every line is counted once', async () => {
  const old = built(last);
  const log = join(place.path, 'history.log');
  writeFileSync(log, '');
  const file = agentFile(place.path, { logs: `${log}*` });
  const line = `${JSON.stringify({ level: 'info', logger: 'shard', ts: '2026-01-01T00:00:00Z', msg: 'x' })}\n`;
  const write = (count: number) => appendFileSync(log, line.repeat(count));
  let written = 0;
  for (const [program, count] of [
    [old, 100],
    [mainFile, 75],
    [old, 10],
    [mainFile, 5],
  ] as const) {
    write(count);
    written += count;
    // What is rotated while no agent runs is read by the other version.
    if (count === 75) {
      renameSync(log, `${log}.1`);
      write(0);
    }
    const agent = start(process.execPath, [program, 'run', '-c', file]);
    const address = await until(
      'the agent listens',
      () => /"listener":"metrics","address":"([^"]+)"/.exec(agent.output())?.[1],
    );
    const counted = new RegExp(
      `^svc_log_entries_total\\{.*level="info",logger="shard".*\\} ${written}$`,
      'm',
    );
    await until(`${written} lines are counted`, async () =>
      counted.test(await (await fetch(`http://${address}/metrics`)).text()),
    );
    expect(await agent.end(), agent.output()).toBe(0);
    expect(agent.output()).not.toMatch(/"level":"error"/);
  }
});
