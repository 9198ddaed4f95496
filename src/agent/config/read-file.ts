import { closeSync, openSync, readSync } from 'node:fs';
import { errorText } from '../../core/errors.ts';
import type { PlacedFault } from './loaded.ts';

const maxFileBytes = 1024 * 1024;

/** A configuration file's text, or why there is none. `name` is the file as messages call it. Never throws. */
export function readFileText(file: string, name: string): { text: string } | { fault: PlacedFault } {
  const refuse = (what: string, allowed: string): { fault: PlacedFault } => ({
    fault: { where: name, what, allowed, path: '', place: { file: name, line: 1, column: 1 } },
  });
  let bytes: Buffer;
  try {
    bytes = readBounded(file);
  } catch (error) {
    return refuse(`cannot be read, ${reason(error)}`, 'name a file that is there and readable');
  }
  if (bytes.length > maxFileBytes) return refuse('larger than 1 MiB', 'use a configuration, no data');
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return refuse('not UTF-8', 'save it as UTF-8');
  }
}

/** At most one byte over the bound, so that an endless device ends too. */
function readBounded(file: string): Buffer {
  const descriptor = openSync(file, 'r');
  try {
    const buffer = Buffer.allocUnsafe(maxFileBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(descriptor, buffer, length, buffer.length - length, null);
    }
    return buffer.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** The system's reason without its repetition of call and path. */
function reason(error: unknown): string {
  return errorText(error).split(', ')[0]!;
}
