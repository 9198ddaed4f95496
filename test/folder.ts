import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates a folder that is removed after the test, or after the file if `after` is `afterAll`. */
export function newFolder(after: (remove: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-agent-test-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
