import { readFileSync, writeFileSync } from 'node:fs';

/** Flips one bit of the byte at `at`, by default in the middle of the file. */
export function flip(path: string, at?: number): void {
  const bytes = readFileSync(path);
  bytes[at ?? bytes.length >> 1]! ^= 0x10;
  writeFileSync(path, bytes);
}
