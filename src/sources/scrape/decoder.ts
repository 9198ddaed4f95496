import { createGunzip, type Gunzip } from 'node:zlib';
import { ScrapeFailure } from './scrape-status.ts';

/** Decompresses a body on the way to the reader. */
export interface Decoder {
  /** Decodes a chunk. False: the sender must pause until `resume` is called. */
  write(chunk: Buffer): boolean;
  /** Ends the body; `done` is called after its last byte was read. */
  end(): void;
  destroy(): void;
}

interface DecoderHooks {
  /** Receives decoded bytes; may throw. */
  take(bytes: Buffer): void;
  resume(): void;
  done(): void;
  fail(error: unknown): void;
}

function identityDecoder({ take, done, fail }: DecoderHooks): Decoder {
  return {
    write(chunk) {
      try {
        take(chunk);
      } catch (error) {
        fail(error);
      }
      return true;
    },
    end: done,
    destroy() {},
  };
}

/** Decompresses chunk by chunk, so that a small body that expands to a huge one stops at the reader's limit. */
function gzipDecoder({ take, resume, done, fail }: DecoderHooks): Decoder {
  const stream: Gunzip = createGunzip({ chunkSize: 64 * 1024 });
  stream.on('data', (bytes: Buffer) => {
    if (stream.destroyed) return;
    try {
      take(bytes);
    } catch (error) {
      stream.destroy();
      fail(error);
    }
  });
  stream.on('drain', resume);
  stream.on('end', done);
  stream.on('error', (error: NodeJS.ErrnoException) => {
    const isShort = error.code === 'Z_BUF_ERROR';
    fail(
      isShort
        ? new ScrapeFailure('cut_off', 'the compressed body ends too early', error)
        : new ScrapeFailure('invalid_body', 'the body does not match its Content-Encoding', error),
    );
  });
  return {
    // The chunk is a view of a buffer that the connection fills again.
    write: (chunk) => stream.write(Buffer.from(chunk)),
    end: () => stream.end(),
    destroy: () => stream.destroy(),
  };
}

/** The decoder for a Content-Encoding. Throws `ScrapeFailure` for an encoding that was not requested. */
export function createDecoder(encoding: string | undefined, hooks: DecoderHooks): Decoder {
  const name = (encoding ?? '').trim().toLowerCase();
  if (name === '' || name === 'identity') return identityDecoder(hooks);
  if (name === 'gzip' || name === 'x-gzip') return gzipDecoder(hooks);
  throw new ScrapeFailure(
    'content_encoding',
    `the target answers with Content-Encoding ${JSON.stringify(encoding)}`,
  );
}
