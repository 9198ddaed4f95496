import { execFileSync } from 'node:child_process';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

/** The time without the end of a test after which a run is stalled. Alone on a busy machine, no test takes half of it. */
const stalledAfterMs = 15 * 60_000;
const checkEveryMs = 10_000;

interface Process {
  pid: number;
  parent: number;
  /** The line of `ps`: process id, its parent's, seconds since its start, state, command. */
  line: string;
}

function descendantsOf(root: number): Process[] {
  const text = execFileSync('ps', ['-ewwo', 'pid=,ppid=,etimes=,stat=,args='], { encoding: 'utf8' });
  const all = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Process => {
      const [pid, parent] = line.trim().split(/\s+/).map(Number);
      return { pid: pid!, parent: parent!, line: line.slice(0, 300) };
    });
  const found: Process[] = [];
  const parents = [root];
  for (let parent = parents.pop(); parent !== undefined; parent = parents.pop()) {
    const children = all.filter((one) => one.parent === parent && !one.line.includes(' ps -ewwo '));
    found.push(...children);
    parents.push(...children.map(({ pid }) => pid));
  }
  return found;
}

/** Ends the processes of the run and the run itself: a test in which a program is waited for synchronously has no time-out. */
function endRun(processes: readonly Process[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
  process.exit(1);
}

/**
 * A reporter of Vitest that ends a run which makes no progress, and prints which files and tests were running, and the processes.
 * Without it CI would only say that its time is over.
 */
export default class Stall implements Reporter {
  readonly #files = new Set<TestModule>();
  readonly #tests = new Set<TestCase>();
  readonly #nowMs: () => number;
  readonly #end: typeof endRun;
  #lastMs = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Vitest passes options, of which there are none. */
  constructor(_options?: unknown, nowMs = () => performance.now(), end = endRun) {
    this.#nowMs = nowMs;
    this.#end = end;
  }

  onTestRunStart(): void {
    this.#lastMs = this.#nowMs();
    // A nightly run has tests of hours.
    if (process.env.TEST_SIZE !== 'nightly')
      this.#timer = setInterval(() => this.check(), checkEveryMs).unref();
  }

  onTestModuleStart(file: TestModule): void {
    this.#files.add(file);
  }

  onTestCaseReady(test: TestCase): void {
    this.#tests.add(test);
  }

  onTestCaseResult(test: TestCase): void {
    this.#tests.delete(test);
    this.#lastMs = this.#nowMs();
  }

  onTestModuleEnd(file: TestModule): void {
    this.#files.delete(file);
    this.#lastMs = this.#nowMs();
  }

  onTestRunEnd(): void {
    clearInterval(this.#timer);
  }

  check(): void {
    if (this.#nowMs() - this.#lastMs < stalledAfterMs) return;
    const processes = descendantsOf(process.pid);
    const lines = [
      `no test has ended for ${stalledAfterMs / 60_000} minutes; these were running:`,
      ...[...this.#files].map((file) => `failed: ${file.relativeModuleId}: the file did not end`),
      ...[...this.#tests].map((test) => `  ${test.module.relativeModuleId}: ${test.fullName}`),
      ...processes.map(({ line }) => `  ${line}`),
    ];
    process.stderr.write(`\n${lines.join('\n')}\n`);
    this.#end(processes);
  }
}
