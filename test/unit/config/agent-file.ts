import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

let folder: string | undefined;
let written = 0;

/** The folder of the running test's files; it is removed when the test ends. */
function testFolder(): string {
  if (folder) return folder;
  const made = mkdtempSync(join(tmpdir(), 'svc-agent-config-'));
  folder = made;
  onTestFinished(() => {
    folder = undefined;
    rmSync(made, { recursive: true, force: true });
  });
  return made;
}

/** Writes a file of the running test; returns its path. */
export function agentFile(content: string | Uint8Array): string {
  const path = join(testFolder(), `${++written}.yaml`);
  writeFileSync(path, content);
  return path;
}
