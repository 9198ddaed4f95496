// Bundles the agent into dist/: one chunk per entry, shared code once, what is optional in chunks of its own
// that load only when the configuration names them.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { prepare, preparedFile } from '../examples/service/store/prepared.mjs';
import { root } from './setup.mjs';

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const outdir = join(root, 'dist');
rmSync(outdir, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: {
    main: 'src/agent/main.ts',
    config: 'src/agent/config/worker.ts',
    password: 'src/reporters/pull/guard/password-thread.ts',
    'example-service': 'examples/service/main.ts',
    'example-store': 'examples/service/store/thread.mjs',
    'example-cli': 'examples/cli/main.ts',
  },
  outdir,
  bundle: true,
  // Not bundled, for it reads files that lie beside it; only the example service asks for it.
  external: ['@electric-sql/*'],
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node20',
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
  define: { 'process.env.SVC_AGENT_VERSION': JSON.stringify(version) },
  // CommonJS dependencies ask for `require` of Node's own modules.
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);",
  },
});
if (!existsSync(preparedFile())) await prepare();
