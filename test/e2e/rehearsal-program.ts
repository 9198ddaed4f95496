import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { RehearsalAnswer, RehearsalRequest } from '../../src/probes/rehearsal/rehearsal.ts';

// The built program that restores one backup into a throwaway server.

const rehearsalProgram = fileURLToPath(new URL('../../dist/rehearse.mjs', import.meta.url));

/** The folder for throwaway servers; another user must be able to pass through it. */
export function rehearsalFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-rehearsals-'));
  chmodSync(path, 0o755);
  return path;
}

export const requestOf = (directory: string, over: Partial<RehearsalRequest>): RehearsalRequest => ({
  kind: 'postgres',
  directory,
  maxBytes: 2 ** 31,
  timeoutMs: 120_000,
  owner: directory,
  backup: '',
  database: 'svc',
  role: 'persistence',
  schemaVersion: '0.8',
  ...over,
});

/** Runs the rehearsing process, which must leave nothing behind, and returns its answer. */
export function rehearsed(request: RehearsalRequest): RehearsalAnswer {
  const { stdout, stderr } = spawnSync(process.execPath, [rehearsalProgram, JSON.stringify(request)], {
    encoding: 'utf8',
  });
  const answer = stdout.trim().split('\n').at(-1);
  if (!answer) throw new Error(`no answer: ${stderr}`);
  expect(readdirSync(request.directory)).toEqual([]);
  expect(processesIn(request.directory)).toEqual([]);
  return JSON.parse(answer) as RehearsalAnswer;
}

/** The command lines that name the directory. */
export const processesIn = (directory: string): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        return [readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')];
      } catch {
        return [];
      }
    })
    .filter((words) => words.includes(`${directory}/`));
