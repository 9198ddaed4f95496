// npm run mutants -- [--every N] PATH [TESTS]: changes the sources below PATH in one place at a time and says which changes no
// test of TESTS (patterns; all unit and contract tests unless given) notices. Exits with 1 if less than 85 % of them are noticed.
// The patterns are run one after the other, so patterns with quick tests should come first: a change that they notice is not
// tried again. `--every 3` makes every third of the changes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { ensureInstalled, ensureNode, root } from './setup.mjs';

/** The share of the mutants that tests reach and must notice. */
const wantedShare = 0.85;
/** Much longer than any test takes: the limit of each is 5 s. */
const longestAttemptMs = 20_000;

ensureNode();
ensureInstalled();
const given = process.argv.slice(2);
const every = given[0] === '--every' ? Number(given.splice(0, 2)[1]) : 1;
const [path, ...tests] = given;
if (!path || !existsSync(path) || !(every >= 1)) {
  process.stderr.write('npm run mutants -- [--every N] PATH [TESTS]; PATH is a folder or a file below src\n');
  process.exit(2);
}
const tool = join(root, 'tools', 'mutants');

const folder = mkdtempSync(join(tmpdir(), 'svc-agent-mutants-'));
try {
  const patterns = tests.length > 0 ? tests : ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts'];
  let before = { killed: [], reached: [], atLoad: [] };
  for (const pattern of patterns) {
    do {
      writeFileSync(join(folder, 'before.json'), JSON.stringify(before));
      await run(pattern);
      before = afterRun(folder, before);
    } while (before.ended > 0);
  }
  process.exitCode = report(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Tries the mutants that no earlier run has killed. */
async function run(pattern) {
  const args = ['run', '--root', root, '--config', join(tool, 'vitest.config.mjs')];
  const vitest = spawn(join(root, 'node_modules', '.bin', 'vitest'), args, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      NODE_NO_WARNINGS: '1',
      MUTANTS_PATH: resolve(path),
      MUTANTS_OUT: folder,
      MUTANTS_TESTS: JSON.stringify([pattern]),
      MUTANTS_EVERY: String(every),
    },
  });
  const watch = setInterval(endStuckWorkers, 5_000);
  await once(vitest, 'exit');
  clearInterval(watch);
}

/** Ends workers in an endless loop that passes no switch: the time limit of a test cannot interrupt such a loop. */
function endStuckWorkers() {
  for (const name of attemptsIn(folder)) {
    const stats = statSync(join(folder, name), { throwIfNoEntry: false });
    const pid = Number(/^attempt-(\d+)-/.exec(name)[1]);
    if (stats === undefined || Date.now() - stats.mtimeMs < longestAttemptMs) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The worker has ended meanwhile.
    }
  }
}

/**
 * The results of the runs so far. A mutant that ended its worker, for example by using too much memory, is noticed; the tests
 * after it were not run, so another run is needed: `ended` counts such mutants.
 */
function afterRun(results, before) {
  const attempts = attemptsIn(results);
  const ended = attempts.map((name) => readFileSync(join(results, name), 'utf8'));
  for (const name of attempts) rmSync(join(results, name));
  const found = [before, ...foundIn(results)];
  const all = (key) => [...new Set(found.flatMap((worker) => worker[key]))];
  return {
    killed: [...all('killed'), ...ended],
    reached: [...all('reached'), ...ended],
    atLoad: all('atLoad'),
    ended: ended.length,
  };
}

function attemptsIn(results) {
  return readdirSync(results).filter((name) => name.startsWith('attempt-'));
}

/** The results of each worker, and of the runs before the last run. */
function foundIn(results) {
  const names = readdirSync(results).filter((name) => name.endsWith('.json') && name !== 'mutants.json');
  return names.map((name) => JSON.parse(readFileSync(join(results, name), 'utf8')));
}

/** Prints the survivors by file and line, and a line of figures; returns the exit status. */
function report(results) {
  const mutants = JSON.parse(readFileSync(join(results, 'mutants.json'), 'utf8'));
  const found = foundIn(results);
  const idsOf = (key) => new Set(found.flatMap((worker) => worker[key]));
  const [killed, reached, atLoad] = [idsOf('killed'), idsOf('reached'), idsOf('atLoad')];
  const judged = mutants.filter(({ id }) => reached.has(id) || !atLoad.has(id));
  const survivors = judged.filter(({ id }) => !killed.has(id));
  for (const { id, fileName, line, mutatorName, replacement } of survivors) {
    const how = reached.has(id) ? 'survived' : 'no test reaches it';
    const text = replacement.replaceAll(/\s+/g, ' ').slice(0, 60);
    process.stdout.write(`${relative(root, fileName)}:${line}  ${mutatorName} -> ${text}  (${how})\n`);
  }
  const share = judged.length === 0 ? 0 : (judged.length - survivors.length) / judged.length;
  process.stdout.write(
    `${judged.length - survivors.length} of ${judged.length} mutants noticed (${(share * 100).toFixed(1)} %); ` +
      `${mutants.length - judged.length} more act only while modules are loaded and were not judged\n`,
  );
  return share >= wantedShare ? 0 : 1;
}
