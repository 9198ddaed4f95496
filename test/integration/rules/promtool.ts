import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { isInstalled } from '../../installed.ts';

export const hasPromtool = isInstalled('promtool');

/** With Go's own setting, garbage collection takes a quarter of the time; this setting costs 100 MB. */
const options = { maxBuffer: 64 << 20, env: { ...process.env, GOGC: '800' } };

export function promtool(...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { ...options, encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

/** Runs promtool with documents that are written to a folder which exists as long as the call. */
export async function promtoolOver(files: Readonly<Record<string, unknown>>, ...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-agent-rules-'));
  try {
    for (const [name, document] of Object.entries(files))
      writeFileSync(join(folder, name), stringify(document, { aliasDuplicateObjects: false }));
    const paths = args.map((arg) => (arg in files ? join(folder, arg) : arg));
    return await new Promise<{ status: number; output: string }>((resolve) => {
      execFile('promtool', paths, options, (error, stdout, stderr) =>
        resolve({ status: error ? Number(error.code) : 0, output: stdout + stderr }),
      );
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
