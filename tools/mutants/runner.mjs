// Runs each test once without a mutant, and then once for every mutant that it reached and that no earlier test noticed. A test
// is repeated in place: its file, its hooks and the sources are loaded once.
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { TestRunner } from 'vitest';

// The instrumented sources use these names.
const switches = {
  mutantCoverage: { static: {}, perTest: {} },
  passes: 0,
  mostPasses: Number.POSITIVE_INFINITY,
};
globalThis.__stryker__ = switches;

/** Ids of the mutants that are tried. */
const tried = new Set(
  JSON.parse(readFileSync(join(process.env.MUTANTS_OUT, 'mutants.json'), 'utf8')).map(({ id }) => id),
);
/** Ids of mutants: those that a test reached, and those that a test noticed. All files of a worker share them. */
const before = JSON.parse(readFileSync(join(process.env.MUTANTS_OUT, 'before.json'), 'utf8'));
const reached = new Set(before.reached);
const killed = new Set(before.killed);
/** `TEST MUTANT` for each mutant that a test did not notice: it is not tried with that test again if another run is needed. */
const survived = new Set();
for (const name of readdirSync(process.env.MUTANTS_OUT)) {
  const written = readFileSync(join(process.env.MUTANTS_OUT, name), 'utf8');
  const [, pid] = /^attempt-(\d+)-/.exec(name) ?? [];
  // A mutant that ended another worker of this run would end this one, too.
  if (pid !== undefined && !existsSync(`/proc/${pid}`)) killed.add(written);
  if (/^\d+-\d+\.json$/.test(name)) for (const id of JSON.parse(written).killed) killed.add(id);
  if (name.startsWith('survived-')) for (const pair of written.split('\n')) survived.add(pair);
}
/** A file that names the mutant that is being tried, in case it ends the worker. */
const attempt = join(process.env.MUTANTS_OUT, `attempt-${process.pid}-${threadId}`);
const survivors = join(process.env.MUTANTS_OUT, `survived-${process.pid}-${threadId}`);

/** An endless loop is ended when it has passed all switches this many times more often than without a mutant. */
const loopFactor = 5;
const loopMinimum = 100_000;

export default class MutantRunner extends TestRunner {
  #waiting = [];
  #passes = 0;
  #failsAsItIs = false;

  async onBeforeRunTask(test) {
    await super.onBeforeRunTask(test);
    this.#waiting = [];
    this.#failsAsItIs = false;
    // This is read before every repetition: the number of mutants is known only after the first.
    test.repeats = { valueOf: () => this.#waiting.length };
  }

  onBeforeTryTask(test, { repeats }) {
    super.onBeforeTryTask(test);
    switches.mutantCoverage.perTest = {};
    switches.currentTestId = 'test';
    const mutant = this.#waiting[repeats - 1];
    switches.activeMutant = mutant;
    if (mutant !== undefined) writeFileSync(attempt, mutant);
    switches.passes = 0;
    if (mutant !== undefined) switches.mostPasses = this.#passes * loopFactor + loopMinimum;
  }

  async onAfterRetryTask(test, { repeats }) {
    const failed = test.result.state === 'fail';
    const mutant = switches.activeMutant;
    switches.activeMutant = undefined;
    switches.mostPasses = Number.POSITIVE_INFINITY;
    switches.currentTestId = undefined;
    if (repeats === 0) {
      this.#failsAsItIs = failed;
      this.#passes = switches.passes;
      const passed = Object.keys(switches.mutantCoverage.perTest.test ?? {});
      for (const id of passed) reached.add(id);
      if (!failed) this.#waiting = passed.filter((id) => isWanted(test, id));
      return;
    }
    if (failed && mutant !== undefined) {
      killed.add(mutant);
      save();
    } else if (mutant !== undefined) appendFileSync(survivors, `${test.id} ${mutant}\n`);
    test.result.state = 'run';
    test.result.errors = undefined;
  }

  async onAfterRunTask(test) {
    await super.onAfterRunTask(test);
    rmSync(attempt, { force: true });
    save();
  }
}

const isWanted = (test, id) => tried.has(id) && !killed.has(id) && !survived.has(`${test.id} ${id}`);

/** Writes down what was found so far: a worker may end at any mutant, in a loop that passes no switch. */
function save() {
  const found = {
    killed: [...killed],
    reached: [...reached],
    atLoad: Object.keys(switches.mutantCoverage.static),
  };
  writeFileSync(join(process.env.MUTANTS_OUT, `${process.pid}-${threadId}.json`), JSON.stringify(found));
}
