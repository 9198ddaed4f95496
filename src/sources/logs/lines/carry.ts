import { AgentError, errorText } from '../../../core/errors.ts';
import type { ContainerFormat } from '../options.ts';
import type { PartialLine } from './partials.ts';

/** What a file's sink holds between two lines. */
export interface Held {
  format: ContainerFormat;
  traceable: boolean;
  role: string;
  /** Bytes of a line over the limit that were consumed so far; 0 outside of such a line. */
  longLineBytes: number;
  partials: ReadonlyMap<string, PartialLine>;
}

interface Head extends Omit<Held, 'partials'> {
  partials: { stream: string; fileBytes: number; isTooLong: boolean; length: number }[];
}

/** Encoded states of files that hold nothing but their format, which is nearly all. */
const idle = new Map<string, Uint8Array>();

/**
 * A line of JSON, and behind it the texts of the partial lines in its order; undefined if nothing is held but
 * the format that the file has anyway.
 */
export function encodeHeld(held: Held, ownFormat: ContainerFormat): Uint8Array | undefined {
  const isIdle = !held.traceable && held.role === '' && held.longLineBytes === 0 && held.partials.size === 0;
  if (isIdle && held.format === ownFormat) return undefined;
  const known = isIdle ? idle.get(held.format) : undefined;
  if (known) return known;
  const head: Head = {
    ...held,
    partials: [...held.partials].map(([stream, { fileBytes, isTooLong, text }]) => ({
      stream,
      fileBytes,
      isTooLong,
      length: text.length,
    })),
  };
  const texts = [...held.partials.values()].map(({ text }) => text);
  const encoded = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...texts]);
  if (isIdle) idle.set(held.format, encoded);
  return encoded;
}

/** Throws `AgentError` (`snapshot_corrupt`) on what `encodeHeld` has not made. */
export function decodeHeld(encoded: Uint8Array, path: string): Held {
  const bytes = Buffer.from(encoded);
  const headEnd = bytes.indexOf('\n');
  try {
    const head = JSON.parse(bytes.toString('utf8', 0, headEnd)) as Head;
    let at = headEnd + 1;
    const partials = new Map<string, PartialLine>();
    for (const { stream, fileBytes, isTooLong, length } of head.partials) {
      partials.set(stream, { text: bytes.subarray(at, at + length), fileBytes, isTooLong });
      at += length;
    }
    return { ...head, partials };
  } catch (error) {
    throw new AgentError('snapshot_corrupt', { where: path, what: `held lines: ${errorText(error)}` }, error);
  }
}
