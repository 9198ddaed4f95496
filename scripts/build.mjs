// Bundles the agent into dist/: one chunk per entry, shared code once, and optional code in separate chunks that load only when
// the configuration names them.
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as esbuild from 'esbuild';
import { prepare, preparedFile } from '../examples/service/store/prepared.mjs';
import { builtinModules } from './builtin-modules.mjs';
import { buildConfigProcess } from './config-process.mjs';
import { fewChunks } from './few-chunks.mjs';
import { notices } from './notices.mjs';
import { sbom } from './sbom.mjs';
import { root } from './setup.mjs';

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const outdir = join(root, 'dist');
rmSync(outdir, { recursive: true, force: true });
const metafiles = [];
const build = async (options) => {
  // Paths are relative to the root, wherever node_modules may be, so that the names of chunks are the same.
  const one = { ...options, preserveSymlinks: true, metafile: true };
  metafiles.push((await esbuild.build(one)).metafile);
};
const common = {
  absWorkingDir: root,
  outdir,
  bundle: true,
  platform: 'node',
  target: 'node20',
  minifySyntax: true,
  // The source of every loaded function stays in memory, so it is minified.
  minifyWhitespace: true,
  legalComments: 'none',
  logLevel: 'warning',
  define: { 'process.env.SVC_AGENT_VERSION': JSON.stringify(version) },
};
const inChunks = {
  ...common,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  format: 'esm',
  // CommonJS dependencies ask for `require` of Node's own modules.
  banner: {
    js: "const require = globalThis.process.getBuiltinModule('node:module').createRequire(import.meta.url);",
  },
};
/** The HTTP client speaks HTTP/1.1 here, and Node's HTTP/2 takes 5 ms to load. */
const withoutHttp2 = {
  name: 'without-http2',
  setup: ({ onLoad }) =>
    onLoad({ filter: /undici\/lib\/dispatcher\/client-h2\.js$/ }, () => ({ contents: '' })),
};
const agent = {
  ...inChunks,
  entryPoints: { main: 'src/agent/main.ts', password: 'src/reporters/listen/password-thread.ts' },
  // A PostgreSQL client asks whether `Response` exists, and Node 20 would load all that belongs to `fetch`.
  define: { ...common.define, Response: 'undefined' },
};
const { metafile } = await esbuild.build({ ...agent, preserveSymlinks: true, metafile: true, write: false });
await build({ ...agent, plugins: [fewChunks(metafile), withoutHttp2, builtinModules] });
// The example is built separately: what is true for the agent's own code need not be true for it.
await build({
  ...inChunks,
  entryPoints: {
    'example-service': 'examples/service/main.ts',
    'example-store': 'examples/service/store/thread.mjs',
    'example-cli': 'examples/cli/main.ts',
  },
  // This package is not bundled, because it reads files beside it; only the example service uses it.
  external: ['@electric-sql/*'],
});
await buildConfigProcess(
  ({ define, ...options }) => build({ ...common, ...options, define: { ...common.define, ...define } }),
  outdir,
);
// The processes that verify a backup and rehearse a recovery are built separately, so that they start small.
await build({
  ...common,
  entryPoints: {
    rehearse: 'src/probes/rehearsal/rehearse-main.ts',
    verify: 'src/probes/backups/verify-main.ts',
  },
  outExtension: { '.js': '.mjs' },
  format: 'esm',
  minify: true,
});
// The status page has two files beside its document, which browsers load from the admin listener.
const page = join(root, 'src/agent/admin/page');
await build({
  absWorkingDir: root,
  entryPoints: [
    { in: join(page, 'main.ts'), out: 'page' },
    { in: join(page, 'page.css'), out: 'page' },
  ],
  outdir: join(outdir, 'page'),
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['chrome110', 'firefox115', 'safari16'],
  legalComments: 'none',
  logLevel: 'warning',
});
for (const file of ['index.html', 'icon.svg']) copyFileSync(join(page, file), join(outdir, 'page', file));
writeFileSync(join(outdir, 'NOTICES.txt'), notices(root, metafiles));
writeFileSync(join(outdir, 'sbom.cdx.json'), sbom(root, metafiles));
if (!existsSync(preparedFile())) await prepare();
