// npm run bench -- NAME [ARGS]: bundles bench/NAME.ts and runs it. Node 20 cannot run TypeScript by itself.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle, ensureBuilt, ensureInstalled, ensureNode, root } from './setup.mjs';

ensureNode();
ensureInstalled();
const [name, ...args] = process.argv.slice(2);
const entry = join(root, 'bench', `${name}.ts`);
/** The other files in the folder are parts of benchmarks. */
const names = readdirSync(join(root, 'bench'))
  .map((file) => file.replace(/\.ts$/, ''))
  .filter((one) =>
    readFileSync(join(root, 'bench', `${one}.ts`), 'utf8').includes(`npm run bench -- ${one}`),
  );
if (!names.includes(name)) {
  process.stderr.write(
    `npm run bench -- NAME [ARGUMENT...]: got ${JSON.stringify(name)}; allowed: ${names.join(', ')}\n`,
  );
  process.exit(2);
}
ensureBuilt();
const place = mkdtempSync(join(tmpdir(), 'svc-agent-bench-'));
try {
  symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'));
  const outfile = join(place, `${name}.mjs`);
  // Servers and agents that a bench has started end with its process.
  await bundle({ entryPoints: [entry], outfile, footer: { js: 'process.exit();' } });
  const env = { ...process.env, SVC_AGENT_ROOT: root };
  process.exitCode =
    spawnSync(process.execPath, ['--expose-gc', outfile, ...args], { stdio: 'inherit', env }).status ?? 1;
} finally {
  rmSync(place, { recursive: true, force: true });
}
