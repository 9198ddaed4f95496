import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './imports.ts';

const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter(
  (path) => /\.ts$/.test(path) && !path.startsWith('fixtures') && !path.endsWith('sleeps.test.ts'),
);
const linesOf = (file: string) => readFileSync(join(root, 'test', file), 'utf8').split('\n');
const linesWith = (wanted: RegExp, except: readonly string[]): string[] =>
  files
    .filter((file) => !except.includes(file))
    .flatMap((file) =>
      linesOf(file).flatMap((line, i) => (wanted.test(line) ? [`${file}:${i + 1}: ${line.trim()}`] : [])),
    );

test('no test sleeps: it moves the clock, or waits for a fact with until', () => {
  const sleep = /new Promise\b.*=> (?:void )?setTimeout\(|setTimeout\b.*from 'node:timers\/promises'/;
  // This file renders pictures of a live page, and is no test.
  expect(linesWith(sleep, ['until.ts', 'preview/preview.ts'])).toEqual([]);
});

test('no test starts a program to sleep', () => {
  expect(linesWith(/\('sleep'/, [])).toEqual([]);
});

test('no test asserts how much memory a process takes', () => {
  // Files that measure the heap after a garbage collection, when it contains only what is in use, whatever else the process did.
  const afterCollection = [
    'fault/store-silent-in-a-statement.long.test.ts',
    'fault/statsd-summaries-over-the-limit.test.ts',
    'integration/agent/status-stream.test.ts',
  ];
  const ofLimits = [
    // The memory limit with which the image and the manifests are shipped.
    'e2e/limits-as-shipped.long.test.ts',
    // Compares an agent at its limits with one at ten times as much.
    'e2e/limits-bound-memory.nightly.test.ts',
  ];
  expect(linesWith(/process\.memoryUsage|VmRSS|VmHWM|RssAnon/, [...afterCollection, ...ofLimits])).toEqual(
    [],
  );
});
