import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import type { Loaded, LoadRequest } from './types.ts';

/** The module that the build made of `validate.ts`. */
interface Validation {
  validate(request: LoadRequest): Promise<Loaded>;
}

/**
 * Runs a file with the bytecode that the build put beside it: compiling zod and its schemas takes a third of this process's time.
 * V8 ignores the bytecode of another version, and compiles the source.
 */
function runCompiled(file: string): Validation {
  const source = readFileSync(file, 'utf8');
  const script = new Script(source, { filename: basename(file), cachedData: bytecodeOf(file, source) });
  const module = { exports: {} as Validation };
  script.runInThisContext()(createRequire(file), module, file);
  return module.exports;
}

/**
 * The bytecode of a file; undefined if it does not fit. V8 compares the version and the length of the source, and would run
 * bytecode that is damaged, or that belongs to another source of this length. Therefore the file begins with a checksum of both,
 * as a 32-bit number.
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

/**
 * The agent ends this process when it has read the answer. Within this time the process does not end by itself: it would take its
 * heap apart, object by object, while the agent starts.
 */
const readMs = 1_000;

/**
 * Answers the request on standard input with a line on standard output. Nobody asks, or waits for the answer, if the agent ended
 * meanwhile.
 */
async function answer(): Promise<void> {
  const asked = readFileSync(0, 'utf8');
  if (asked === '') return;
  const loaded = await validate(JSON.parse(asked) as LoadRequest);
  try {
    writeFileSync(1, `${JSON.stringify(loaded)}\n`);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EPIPE') throw thrown;
    return;
  }
  setTimeout(() => {}, readMs);
}

// This is a separate process, so that the memory of zod and yaml is released.
void answer();
