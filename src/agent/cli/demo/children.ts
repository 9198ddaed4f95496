import { type Child, startChild } from './child.ts';
import { obituary } from './words.ts';

/** Programs that live and end together. */
export interface Children {
  /** Throws once the end was asked for. */
  start(...child: Parameters<typeof startChild>): Child;
  /** Resolves with what to print if one ends before it is asked to. */
  readonly broken: Promise<string>;
  /** Aborted as soon as the end is asked for. */
  readonly ending: AbortSignal;
  /** Ends them all; those that have not after `graceMs` are killed. */
  end(graceMs: number): Promise<void>;
}

export function createChildren(): Children {
  const children: Child[] = [];
  const ending = new AbortController();
  let breakDown: (text: string) => void = () => {};
  const broken = new Promise<string>((resolve) => {
    breakDown = resolve;
  });
  return {
    start: (...args) => {
      ending.signal.throwIfAborted();
      const child = startChild(...args);
      children.push(child);
      void child.ended.then((how) => {
        if (!ending.signal.aborted) breakDown(obituary(child, how));
      });
      return child;
    },
    broken,
    ending: ending.signal,
    end: async (graceMs) => {
      ending.abort();
      await Promise.all(children.map((child) => child.end(graceMs)));
    },
  };
}
