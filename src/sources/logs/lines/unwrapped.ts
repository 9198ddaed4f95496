/** The text of a line inside a container runtime's wrapping. Valid until the next one is unwrapped. */
export interface Unwrapped {
  bytes: Buffer;
  view: DataView;
  /** The text is `bytes[from, to)` and a newline stands at `to`. */
  from: number;
  to: number;
  stream: string;
  /** The text goes on in the stream's next line. */
  partial: boolean;
}

/** Unwraps the line `bytes[at, end)`, whose newline is at `end`; false if it is not wrapped that way. */
export type Unwrap = (bytes: Buffer, view: DataView, at: number, end: number, into: Unwrapped) => boolean;
