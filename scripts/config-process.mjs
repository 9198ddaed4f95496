// Builds the process that checks the configuration (src/agent/config/worker.ts). A start waits for this process, so its files are
// small, and the bytecode of the larger one is stored beside it. Bytecode belongs to one version of Node.js and differs from
// build to build, so the package (package.json, files) leaves it out.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import { root } from './setup.mjs';

const alone = { outExtension: { '.js': '.cjs' }, format: 'cjs', minify: true };

/** Builds the process; `build` bundles with the given options of esbuild. */
export async function buildConfigProcess(build, outdir) {
  await build({ ...alone, entryPoints: { config: 'src/agent/config/worker.ts' } });
  await build({
    ...alone,
    entryPoints: { validate: 'src/agent/config/validate.ts' },
    define: { 'import.meta.url': 'urlOfBundle' },
    // The bundle is an expression that the worker evaluates: a function of the parameters that CommonJS passes to a module.
    banner: {
      js: "((require, module, __filename) => { const urlOfBundle = require('node:url').pathToFileURL(__filename).href;",
    },
    footer: { js: '})' },
    // Probes load these packages when they check something; this process checks nothing.
    external: ['undici', 'undici/*', 'aws4fetch'],
  });
  await writeBytecode(join(outdir, 'validate.cjs'));
}

/**
 * Writes the bytecode, after checking the example: only functions that have run have bytecode. The bytecode names the file
 * without the place where it was built.
 */
async function writeBytecode(file) {
  const source = readFileSync(file, 'utf8');
  const script = new Script(source, { filename: basename(file) });
  const module = { exports: {} };
  script.runInThisContext()(createRequire(file), module, file);
  await module.exports.validate({ file: join(root, 'examples', 'agent.yaml'), env: {}, cwd: root });
  const bytecode = script.createCachedData();
  // V8 checks neither the source nor the bytecode, so the worker does.
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(crc32(bytecode, crc32(source)));
  writeFileSync(`${file}.bytecode`, Buffer.concat([sum, bytecode]));
}
