import { closeSync, createReadStream, openSync, readSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { errorText, systemCode } from '../../core/errors.ts';
import { programOf } from './programs.ts';
import { CannotLook } from './rehearsal.ts';
import type { Sandbox } from './sandbox.ts';

/** Programs that unpack a file, by the first bytes of the file. */
const unpackers: readonly (readonly [Buffer, readonly string[]])[] = [
  [Buffer.from([0x1f, 0x8b]), ['gzip', '-dc']],
  [Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), ['zstd', '-dc']],
  [Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a]), ['xz', '-dc']],
  [Buffer.from([0x42, 0x5a, 0x68]), ['bzip2', '-dc']],
  [Buffer.from([0x04, 0x22, 0x4d, 0x18]), ['lz4', '-dc']],
];

/** The first bytes of a file. Throws CannotLook if it cannot be read. */
export function headOf(path: string): Buffer {
  const head = Buffer.alloc(16);
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    return head.subarray(0, readSync(fd, head, 0, head.length, 0));
  } catch (thrown) {
    throw cannotRead(path, thrown);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

export const cannotRead = (path: string, thrown: unknown): CannotLook =>
  new CannotLook(`${path} cannot be read (${systemCode(thrown) ?? errorText(thrown)})`);

interface UnpackedFile {
  stream: Readable;
  /** Resolves with the reason why unpacking failed, or undefined. */
  fault: Promise<string | undefined>;
}

/** The content of a file, unpacked by the program that its first bytes indicate. Throws CannotLook. */
export function unpackedFile(path: string, sandbox: Sandbox): UnpackedFile {
  const head = headOf(path);
  const argv = unpackers.find(([magic]) => head.subarray(0, magic.length).equals(magic))?.[1];
  if (argv === undefined) return { stream: createReadStream(path), fault: Promise.resolve(undefined) };
  const [name = '', ...options] = argv;
  const program = sandbox.start([programOf([name]), ...options, path], { asAgent: true });
  program.child.stdin!.end();
  return { stream: program.child.stdout!, fault: program.ended };
}
