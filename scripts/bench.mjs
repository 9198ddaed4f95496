// npm run bench -- NAME [ARGS]: bundles bench/NAME.ts and runs it. Node 20 cannot run TypeScript by itself.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt, ensureInstalled, ensureNode, root } from './setup.mjs';

ensureNode();
ensureInstalled();
ensureBuilt();
const [name, ...args] = process.argv.slice(2);
const entry = join(root, 'bench', `${name}.ts`);
if (!name || !existsSync(entry)) {
  const names = readdirSync(join(root, 'bench')).filter((file) => file.endsWith('.ts'));
  process.stderr.write(
    `npm run bench -- NAME; one of: ${names.map((file) => file.replace(/\.ts$/, '')).join(', ')}\n`,
  );
  process.exit(2);
}
const { build } = await import('esbuild');
const place = mkdtempSync(join(tmpdir(), 'svc-agent-bench-'));
try {
  symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'));
  const outfile = join(place, `${name}.mjs`);
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
  });
  const env = { ...process.env, SVC_AGENT_ROOT: root };
  process.exitCode =
    spawnSync(process.execPath, ['--expose-gc', outfile, ...args], { stdio: 'inherit', env }).status ?? 1;
} finally {
  rmSync(place, { recursive: true, force: true });
}
