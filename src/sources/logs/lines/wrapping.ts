import type { ContainerFormat } from '../options.ts';
import { unwrapCri } from './cri.ts';
import { createDockerUnwrap } from './docker.ts';
import { viewOf } from './fields.ts';
import type { Judge } from './judge.ts';
import type { Partials } from './partials.ts';
import { spaceEnd } from './scan.ts';
import type { Unwrap, Unwrapped } from './unwrapped.ts';

/** Takes lines out of a container runtime's wrapping and hands them to a judge, partial ones joined. */
export interface Wrapping {
  /** How the file is wrapped; `auto` until its first line that is not blank has told. */
  format: ContainerFormat;
  /** The line `bytes[at, end)`, whose newline is at `end` and of which `extraBytes` more are in the file. */
  line(bytes: Buffer, view: DataView, at: number, end: number, extraBytes: number): void;
}

const nothing = Buffer.alloc(0);

export function createWrapping(format: ContainerFormat, judge: Judge, partials: Partials): Wrapping {
  const text: Unwrapped = {
    bytes: nothing,
    view: viewOf(nothing),
    from: 0,
    to: 0,
    stream: '',
    partial: false,
  };
  const unwraps: Partial<Record<ContainerFormat, Unwrap>> = { cri: unwrapCri };
  const unwrapDocker: Unwrap = (...line) => {
    unwraps.docker ??= createDockerUnwrap();
    return unwraps.docker(...line);
  };

  /** Several lines where a text has newlines within; the wrapping counts with the first. */
  const judgeText = (extraBytes: number) => {
    const { bytes, view, to } = text;
    let at = judge.line(bytes, view, text.from, extraBytes);
    while (at <= to) at = judge.line(bytes, view, at, 0);
  };
  const tell = (bytes: Buffer, view: DataView, at: number, end: number): ContainerFormat => {
    if (unwrapCri(bytes, view, at, end, text)) return 'cri';
    return unwrapDocker(bytes, view, at, end, text) ? 'docker' : 'none';
  };
  const wrapping: Wrapping = {
    format,
    line(bytes, view, at, end, extraBytes) {
      if (wrapping.format === 'auto' && spaceEnd(bytes, at) < end)
        wrapping.format = tell(bytes, view, at, end);
      const unwrap = wrapping.format === 'cri' ? unwrapCri : unwrapDocker;
      const isWrapped =
        wrapping.format !== 'none' && wrapping.format !== 'auto' && unwrap(bytes, view, at, end, text);
      if (!isWrapped) {
        judge.line(bytes, view, at, extraBytes);
        return;
      }
      const lineBytes = end + 1 - at + extraBytes;
      if (text.partial) partials.hold(text, lineBytes);
      else if (partials.holds(text.stream)) partials.join(text, lineBytes);
      else judgeText(lineBytes - (text.to + 1 - text.from));
    },
  };
  return wrapping;
}
