import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { root } from '../unit/house/imports.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { folder, mainFile, start } from './process.ts';

const place = folder();
afterAll(() => place.remove());
const git = (...args: string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });

/** The last commit of version 0.1.0; empty if the history is not there. */
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

test.skipIf(last === '')(
  'from 0.1.0 to this version: totals go on, and lines that follow count',
  async () => {
    const old = built(last);
    const log = join(place.path, 'history.log');
    writeFileSync(log, '');
    const file = agentFile(place.path, { logs: `${log}*` });
    const line = `${JSON.stringify({ level: 'info', logger: 'shard', ts: '2026-01-01T00:00:00Z', msg: 'x' })}\n`;
    const total = async (address: string) => {
      const page = await (await fetch(`http://${address}/metrics`)).text();
      return Number(/^svc_log_entries_total\{.*level="info",logger="shard".*\} (\d+)$/m.exec(page)?.[1] ?? 0);
    };
    let before = 0;
    for (const program of [old, mainFile]) {
      const agent = start(process.execPath, [program, 'run', '-c', file]);
      const address = await until(
        'the agent listens',
        () => /"listener":"metrics","address":"([^"]+)"/.exec(agent.output())?.[1],
      );
      await until('the agent is ready', () => agent.output().includes('"msg":"ready"'));
      const kept = await total(address);
      expect(kept).toBeGreaterThanOrEqual(before);
      // Positions of 0.1.0 are not read: the file is new, and is read from its end at the first scan.
      let written = 0;
      before = await until('lines are counted', async () => {
        appendFileSync(log, line);
        written += 1;
        const counted = await total(address);
        return counted > kept ? counted : undefined;
      });
      expect(before - kept).toBeLessThanOrEqual(written);
      expect(await agent.end(), agent.output()).toBe(0);
      expect(agent.output()).not.toMatch(/"level":"error"/);
    }
  },
);
