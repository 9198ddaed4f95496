import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import type { Loaded, LoadRequest } from './types.ts';

/** What the build made of `validate.ts`. */
interface Validation {
  validate(request: LoadRequest): Promise<Loaded>;
}

/**
 * Runs a file with the bytecode that the build put beside it. To compile zod and its schemas takes a third of this
 * process's time. V8 ignores the bytecode of another version, and compiles.
 */
function runCompiled(file: string): Validation {
  const source = readFileSync(file, 'utf8');
  const script = new Script(source, { filename: basename(file), cachedData: bytecodeOf(file, source) });
  const module = { exports: {} as Validation };
  script.runInThisContext()(createRequire(file), module, file);
  return module.exports;
}

/**
 * V8 compares the version and the length of the source, and runs bytecode that is damaged, or that is of another source of
 * this length. So it begins with a checksum of both, as a number of 32 bits.
 */
function bytecodeOf(file: string, source: string): Buffer | undefined {
  try {
    const bytes = readFileSync(`${file}.bytecode`);
    const bytecode = bytes.subarray(4);
    return bytes.readUInt32LE(0) === crc32(bytecode, crc32(source)) ? bytecode : undefined;
  } catch {
    return undefined;
  }
}

const { validate } = runCompiled(join(__dirname, 'validate.cjs'));

// A separate process, so that the memory of zod and yaml is released. It exits after its answer.
process.once('message', async (request: LoadRequest) => {
  process.send?.(await validate(request), () => process.disconnect());
});
