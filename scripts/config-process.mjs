// Builds the process that checks the configuration (src/agent/config/worker.ts). A start waits for it: its files are small, and
// the bytecode of the larger one lies beside it. Bytecode is for one version of Node.js and differs from build to build, so that the
// package (package.json, files) leaves it out.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import { root } from './setup.mjs';

const alone = { outExtension: { '.js': '.cjs' }, format: 'cjs', minify: true };

/** `build` bundles with the esbuild options that it is given. */
export async function buildConfigProcess(build, outdir) {
  await build({ ...alone, entryPoints: { config: 'src/agent/config/worker.ts' } });
  await build({
    ...alone,
    entryPoints: { validate: 'src/agent/config/validate.ts' },
    define: { 'import.meta.url': 'urlOfBundle' },
    // An expression, which the worker evaluates: a function of what CommonJS gives a module.
    banner: {
      js: "((require, module, __filename) => { const urlOfBundle = require('node:url').pathToFileURL(__filename).href;",
    },
    footer: { js: '})' },
    // What probes load when they look; nothing is looked at there.
    external: ['undici', 'undici/*', 'aws4fetch'],
  });
  await writeBytecode(join(outdir, 'validate.cjs'));
}

/** Checks the example before: bytecode is kept only of functions that have run. It names the file, without where it was built. */
async function writeBytecode(file) {
  const source = readFileSync(file, 'utf8');
  const script = new Script(source, { filename: basename(file) });
  const module = { exports: {} };
  script.runInThisContext()(createRequire(file), module, file);
  await module.exports.validate({ file: join(root, 'examples', 'agent.yaml'), env: {}, cwd: root });
  const bytecode = script.createCachedData();
  // V8 does not check either of them; the worker does.
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(crc32(bytecode, crc32(source)));
  writeFileSync(`${file}.bytecode`, Buffer.concat([sum, bytecode]));
}
