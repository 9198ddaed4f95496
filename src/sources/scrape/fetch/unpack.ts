import { createGunzip, type Gunzip } from 'node:zlib';
import { ScrapeFailure } from '../failure.ts';

/** Where the bytes of a body go on their way to the reader. */
export interface Unpacker {
  /** False asks the sender to wait until `resume` is called. */
  write(chunk: Buffer): boolean;
  /** Ends the body; `done` is called when its last byte has been handed on. */
  end(): void;
  destroy(): void;
}

export interface UnpackerHooks {
  /** Takes unpacked bytes; may throw. */
  take(bytes: Buffer): void;
  resume(): void;
  done(): void;
  fail(error: unknown): void;
}

function plain({ take, done, fail }: UnpackerHooks): Unpacker {
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

/** Unpacks piece by piece, so that a small body that becomes a huge one is stopped at the reader's limit. */
function gunzipped({ take, resume, done, fail }: UnpackerHooks): Unpacker {
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
        : new ScrapeFailure('invalid_body', 'the body is not what its Content-Encoding says', error),
    );
  });
  return {
    write: (chunk) => stream.write(chunk),
    end: () => stream.end(),
    destroy: () => stream.destroy(),
  };
}

/** The unpacker for a Content-Encoding. Throws `ScrapeFailure` for one that was not asked for. */
export function createUnpacker(encoding: string | undefined, hooks: UnpackerHooks): Unpacker {
  const name = (encoding ?? '').trim().toLowerCase();
  if (name === '' || name === 'identity') return plain(hooks);
  if (name === 'gzip' || name === 'x-gzip') return gunzipped(hooks);
  throw new ScrapeFailure(
    'content_encoding',
    `the target answers with Content-Encoding ${JSON.stringify(encoding)}`,
  );
}
