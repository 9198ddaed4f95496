import { type Fields, plainText, type Slots, textOf } from '../lines/fields.ts';

/** Hears of a service's life from its log. */
export interface LifeEvents {
  /** The first entry of the service that this process reads. */
  logged(service: string): void;
  /** A line that a process writes once when it starts. */
  started(service: string, line: string): void;
}

/**
 * What processes of the service write once at their start, whole: `Starting service` is also how other
 * messages begin.
 */
const startLine =
  /^(?:service started|Starting service(?: (?:\w+[-_])?(?:frontend|history|matching|worker))?|(?:frontend|history|matching|worker) started)$/;
const shortest = 'worker started'.length;
const longest = 48;
/** The first four letters of them all: few other lines are read any further. */
const beginnings = new Set(
  ['service', 'Starting', 'frontend', 'history', 'matching', 'worker'].map((text) =>
    Buffer.from(text).readInt32LE(0),
  ),
);

/** Gives the start-up line that an entry is, if it is one. */
export function createStartLines(slots: Slots): (fields: Fields) => string | undefined {
  const msg = slots.of('msg');
  return (fields) => {
    if (fields.kind[msg] !== plainText) return undefined;
    const from = fields.from[msg]!;
    const length = fields.to[msg]! - from;
    if (length < shortest || length > longest) return undefined;
    if (!beginnings.has(fields.view.getInt32(from, true))) return undefined;
    const text = textOf(fields, msg) as string;
    return startLine.test(text) ? text : undefined;
  };
}
