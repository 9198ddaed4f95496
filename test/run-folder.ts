import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const variable = 'SVC_AGENT_TEST_FOLDER';

/** The global set-up of Vitest: one folder for the files of a run, which is removed at its end with all that is left there. */
export function setup(): () => void {
  const run = mkdtempSync(join(tmpdir(), 'svc-agent-tests-'));
  // Database servers, and some tests, run as separate users.
  chmodSync(run, 0o1777);
  process.env[variable] = run;
  return () => rmSync(run, { recursive: true, force: true });
}

/** A new folder, and what removes it before the end of the run. */
export function folder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(process.env[variable] ?? tmpdir(), 'svc-agent-test-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * Copies a folder that takes long to create. The first test file of a run that requests `name` creates it, with its owner and
 * mode. `make` gets the path of a folder that does not exist. Two files that start together may both create it; one of the
 * results is used. Outside of a test run, for example in a benchmark, nothing is shared.
 */
export function copyTemplate(name: string, to: string, make: (folder: string) => void): void {
  const templates = process.env[variable];
  if (templates === undefined) {
    make(to);
    return;
  }
  const template = join(templates, name);
  if (!existsSync(template)) {
    const scratch = mkdtempSync(join(templates, 'new-'));
    chmodSync(scratch, 0o777);
    make(join(scratch, name));
    try {
      renameSync(join(scratch, name), template);
    } catch (error) {
      if (!existsSync(template)) throw error;
    }
    rmSync(scratch, { recursive: true, force: true });
  }
  execFileSync('cp', ['-a', '--reflink=auto', '--sparse=always', template, to], { stdio: 'pipe' });
}
