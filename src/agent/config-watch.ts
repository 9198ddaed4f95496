import { createHash } from 'node:crypto';
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../core/ports.ts';

/** Slow look that needs no doorbell: network mounts and projected volumes ring none. */
const lookIntervalMs = 10_000;
/** A rename and a swung link ring several times; one look after the last is enough. */
const settleMs = 100;

/** The content of all files as one text; a missing file is a content too. */
function fingerprint(files: readonly string[]): string {
  const hash = createHash('sha1');
  for (const file of files) {
    try {
      hash.update(readFileSync(file));
    } catch {
      hash.update('missing');
    }
    hash.update('\0');
  }
  return hash.digest('hex');
}

/**
 * Calls `changed` when the content behind any of the files differs from what it was: edited in place, renamed
 * over, or reached through a link that was swung round (a mounted ConfigMap's `..data`). Directory watches are
 * the doorbell; what decides is the content.
 */
export function watchConfiguration(files: readonly string[], clock: Clock, changed: () => void): () => void {
  let known = fingerprint(files);
  let cancelSettle = () => {};
  const look = () => {
    const now = fingerprint(files);
    if (now === known) return;
    known = now;
    changed();
  };
  const ring = () => {
    cancelSettle();
    cancelSettle = clock.after(settleMs, look);
  };
  let cancelLook = () => {};
  const lookAgain = () => {
    cancelLook = clock.after(lookIntervalMs, () => {
      look();
      lookAgain();
    });
  };
  lookAgain();
  const doorbells = [...new Set(files.map((file) => dirname(file)))].flatMap((directory) =>
    doorbell(directory, ring),
  );
  return () => {
    cancelSettle();
    cancelLook();
    for (const bell of doorbells) bell.close();
  };
}

/** A directory that cannot be watched (or not any more) is left to the slow look. */
function doorbell(directory: string, ring: () => void): FSWatcher[] {
  try {
    const bell = watch(directory, { persistent: false }, ring);
    return [bell.on('error', () => bell.close())];
  } catch {
    return [];
  }
}
