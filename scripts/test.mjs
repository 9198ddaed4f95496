// npm test: types, lint, build and the tests, in a fresh clone. With TEST_SIZE=whole: also the long tests; with long or nightly:
// build and the long tests; with arguments, which go to vitest: build and those tests. The last line is `N passed, N failed`.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { ensureBuilt, ensureInstalled, ensureNode, root } from './setup.mjs';

ensureNode();
ensureInstalled();
const bin = (name) => join(root, 'node_modules', '.bin', name);
const files = process.argv.slice(2);
/** Ends this process with the status of a check that fails. */
const started = async (command, args) => {
  const check = spawn(bin(command), args, { cwd: root, stdio: 'inherit' });
  const [status] = await once(check, 'close');
  if (status !== 0) process.exit(status ?? 1);
};
/** Checks the types of a project. The state of the check is stored, so that a second run checks only what has changed. */
const types = (name, ...args) => {
  const file = join(root, 'node_modules', '.cache', 'svc-agent', `${name}.tsbuildinfo`);
  return started('tsc', ['--noEmit', '--incremental', '--tsBuildInfoFile', file, ...args]);
};
// These checks run beside each other and beside the build, which ends first.
const checks =
  [undefined, 'whole'].includes(process.env.TEST_SIZE) && files.length === 0
    ? [
        types('all'),
        types('page', '-p', 'src/agent/admin/page'),
        started('biome', ['check', '--error-on-warnings', '.']),
      ]
    : [];
ensureBuilt();
await Promise.all(checks);

const reports = mkdtempSync(join(tmpdir(), 'svc-agent-test-'));
const report = join(reports, 'report.json');
const run = spawnSync(
  bin('vitest'),
  [
    'run',
    '--reporter=dot',
    '--reporter=json',
    '--reporter=./test/stall.ts',
    `--outputFile.json=${report}`,
    ...files,
  ],
  {
    cwd: root,
    stdio: 'inherit',
  },
);
let result;
try {
  result = JSON.parse(readFileSync(report, 'utf8'));
} catch (cause) {
  process.stderr.write(`svc-agent: the test run left no report: ${cause.message}\n`);
  process.exit(run.status || 1);
} finally {
  rmSync(reports, { recursive: true, force: true });
}
const withStatus = (...wanted) =>
  result.testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => wanted.includes(status))
      .map(({ fullName }) => `${relative(root, name)}: ${fullName}`),
  );
const skipped = new Map();
for (const test of withStatus('pending', 'skipped')) {
  const file = test.slice(0, test.indexOf(': '));
  skipped.set(file, (skipped.get(file) ?? 0) + 1);
}
// This is one line, so that the names of failures are at the end of the output; `npx vitest run FILE --reporter=verbose` names
// the tests.
if (skipped.size > 0) {
  const all = [...skipped.values()].reduce((sum, count) => sum + count, 0);
  const files = [...skipped].map(([file, count]) => `${file} (${count})`);
  process.stdout.write(`${all} skipped in ${files.length} files: ${files.join(', ')}\n`);
}
// This shows where the minutes of CI go. Files run beside each other, so their sum is larger than the duration of the run.
const longest = result.testResults
  .map(({ name, startTime, endTime }) => ({ name, seconds: Math.round((endTime - startTime) / 1000) }))
  .filter(({ seconds }) => seconds >= 10)
  .sort((a, b) => b.seconds - a.seconds)
  .slice(0, 20);
if (longest.length > 0)
  process.stdout.write(
    `longest: ${longest.map(({ name, seconds }) => `${relative(root, name)} ${seconds} s`).join(', ')}\n`,
  );
// A file that cannot be loaded, or whose set-up fails, has no failed test in the report, and must not look as if nothing had
// happened.
const broken = result.testResults
  .filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  )
  .map(({ name }) => `${relative(root, name)}: the file as a whole`);
const failed = [...withStatus('failed'), ...broken];
for (const test of failed) process.stdout.write(`failed: ${test}\n`);
process.stdout.write(`${result.numPassedTests} passed, ${failed.length} failed\n`);
process.exitCode = run.status === 0 && failed.length === 0 ? 0 : 1;
