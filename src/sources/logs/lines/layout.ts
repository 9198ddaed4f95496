import { createPattern, isPatternAt, type Pattern } from './pattern.ts';
import { colon, invalid, quote, spaceEnd, stringEnd } from './scan.ts';

/**
 * What stands between two values, as it was seen before: `,"msg":"` is a comma, a key that was checked, a colon
 * and the quote of a string. Where the same bytes stand again, none of that needs a second look.
 */
export interface Step {
  readonly pattern: Pattern;
  /** Slot of the key, or -1 for one that nobody wants. */
  readonly slot: number;
  /** Ends with the opening quote of a string. */
  readonly opensString: boolean;
  /** What followed last time, and what else ever did. */
  next: Step | undefined;
  readonly others: Step[];
}

/** The order of keys in a file's lines, learnt from them. */
export interface Layout {
  /** Where each line begins. */
  readonly start: Step;
  /**
   * The step at `at`, which is an opening brace or a comma, after the step before; undefined if no member
   * stands there. Learns it.
   */
  find(before: Step, bytes: Buffer, view: DataView, at: number): Step | undefined;
}

const maxSteps = 1024;
const maxOthers = 8;
const maxStepBytes = 256;

function createStep(bytes: Buffer, from: number, to: number, slot: number): Step {
  const pattern = createPattern(bytes, from, to);
  return { pattern, slot, opensString: bytes[to - 1] === quote, next: undefined, others: [] };
}

/**
 * Whether the step's bytes stand at `at`. One without the quote of a string is also the beginning of one with
 * it, or with white space: then it is not the whole of what stands there.
 */
export function isStepAt(step: Step, bytes: Buffer, view: DataView, at: number): boolean {
  if (!isPatternAt(step.pattern, view, at)) return false;
  if (step.opensString) return true;
  const first = bytes[at + step.pattern.length]!;
  return first > 0x20 && first !== quote;
}

export function createLayout(slotOfKey: (key: string) => number): Layout {
  const start = createStep(Buffer.alloc(0), 0, 0, -1);
  const steps = new Map<string, Step>();

  const forget = () => {
    steps.clear();
    start.next = undefined;
    start.others.length = 0;
  };
  const learn = (bytes: Buffer, from: number, to: number, slot: number): Step => {
    const text = bytes.toString('latin1', from, to);
    const known = steps.get(text);
    if (known) return known;
    if (steps.size === maxSteps) forget();
    const step = createStep(bytes, from, to, slot);
    steps.set(text, step);
    return step;
  };
  const follow = (before: Step, step: Step): Step => {
    before.next = step;
    if (!before.others.includes(step)) {
      if (before.others.length === maxOthers) before.others.shift();
      before.others.push(step);
    }
    return step;
  };
  return {
    start,
    find(before, bytes, view, at) {
      for (const step of before.others) {
        if (isStepAt(step, bytes, view, at)) {
          before.next = step;
          return step;
        }
      }
      const key = spaceEnd(bytes, at + 1);
      if (bytes[key] !== quote) return undefined;
      const close = stringEnd(bytes, view, key + 1);
      if (close === invalid) return undefined;
      const mark = spaceEnd(bytes, close + 1);
      if (bytes[mark] !== colon) return undefined;
      const value = spaceEnd(bytes, mark + 1);
      const to = bytes[value] === quote ? value + 1 : value;
      const slot = slotOfKey(JSON.parse(bytes.toString('utf8', key, close + 1)) as string);
      if (to - at > maxStepBytes) return createStep(bytes, at, to, slot);
      return follow(before, learn(bytes, at, to, slot));
    },
  };
}
