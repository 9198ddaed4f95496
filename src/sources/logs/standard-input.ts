import type { Readable } from 'node:stream';
import { errorText } from '../../core/errors.ts';
import type { Log } from '../../core/ports.ts';
import type { LineSink } from './sink.ts';

/**
 * Lines of a stream (`paths: ['-']`). It has no positions: what comes after a restart is new. At its end the
 * unfinished line counts; an error ends it, too, and is logged.
 */
export interface StandardInput {
  /** Counts into the sink that `open` gives for what the one before it held; reading begins with the first. */
  follow(open: (carry: Uint8Array | undefined) => LineSink): void;
  /** Ends as if the stream had ended. */
  stop(): void;
}

export function createStandardInput(input: () => Readable, log: Log): StandardInput {
  let stream: Readable | undefined;
  let sink: LineSink | undefined;
  let rest: Buffer = Buffer.alloc(0);

  const take = (chunk: Buffer | string) => {
    const added = Buffer.from(chunk);
    const bytes = rest.length > 0 ? Buffer.concat([rest, added]) : added;
    rest = bytes.subarray(sink!.write(bytes, 0, bytes.length));
  };
  const finish = () => {
    sink?.finish(rest, 0, rest.length);
    sink = undefined;
    rest = Buffer.alloc(0);
  };
  const fail = (error: Error) => {
    if (sink) log.write('error', 'standard input cannot be read', { error: errorText(error) });
    finish();
  };

  return {
    follow(open) {
      if (stream && !sink) return;
      sink = open(sink?.carry());
      stream ??= input().on('data', take).on('end', finish).on('error', fail);
    },
    stop() {
      stream?.off('data', take).off('end', finish);
      finish();
      stream?.destroy();
    },
  };
}
