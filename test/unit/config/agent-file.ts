import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'svc-agent-config-'));
let written = 0;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a file that goes with the tests of this file; returns its path. */
export function agentFile(content: string | Uint8Array): string {
  const path = join(folder, `${++written}.yaml`);
  writeFileSync(path, content);
  return path;
}
