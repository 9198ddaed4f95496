import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { isInstalled } from '../../installed.ts';

export const hasPromtool = isInstalled('promtool');

export function promtool(...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8', maxBuffer: 64 << 20 });
  return { status, output: stdout + stderr };
}

/** Runs promtool over documents, written to a folder that lives as long as the call. */
export async function promtoolOver(files: Readonly<Record<string, unknown>>, ...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-agent-rules-'));
  try {
    for (const [name, document] of Object.entries(files))
      writeFileSync(join(folder, name), stringify(document, { aliasDuplicateObjects: false }));
    const paths = args.map((arg) => (arg in files ? join(folder, arg) : arg));
    return await new Promise<{ status: number; output: string }>((resolve) => {
      execFile('promtool', paths, { maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
        resolve({ status: error ? Number(error.code) : 0, output: stdout + stderr }),
      );
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
