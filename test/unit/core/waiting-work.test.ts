import { describe, expect, it } from 'vitest';
import { createWaitingWork } from '../../../src/core/slices.ts';

/** An event loop whose turns end when `endTurn` is called. */
function bed() {
  let due: (() => void)[] = [];
  const waitingWork = createWaitingWork((call) => due.push(call));
  const done: string[] = [];
  const work = (name: string, slices: number) => {
    waitingWork.wait(() => {
      done.push(name);
      if (slices > 1) work(name, slices - 1);
    });
  };
  const endTurn = () => {
    const calls = due;
    due = [];
    for (const call of calls) call();
    return calls.length;
  };
  return { waitingWork, done, work, endTurn };
}

describe('work that waits for its slice', () => {
  it('runs one slice in a turn of the event loop, in the order in which they wait', () => {
    const { done, work, endTurn } = bed();
    work('pages', 3);
    work('logs', 2);
    work('probes', 1);
    const perTurn = Array.from({ length: 6 }, () => {
      const before = done.length;
      expect(endTurn()).toBe(1);
      return done.length - before;
    });
    expect(perTurn).toEqual([1, 1, 1, 1, 1, 1]);
    expect(done).toEqual(['pages', 'logs', 'probes', 'pages', 'logs', 'pages']);
    expect(endTurn()).toBe(0);
  });

  it('asks for no turn while nothing waits, and goes on when something does again', () => {
    const { done, work, endTurn } = bed();
    expect(endTurn()).toBe(0);
    for (const name of ['a', 'b']) {
      work(name, 1);
      expect([endTurn(), endTurn()]).toEqual([1, 0]);
    }
    expect(done).toEqual(['a', 'b']);
  });

  it('loses nothing and keeps its order over many slices', () => {
    const { done, work, endTurn } = bed();
    work('a', 5000);
    work('b', 5000);
    while (endTurn() > 0);
    expect(done).toEqual(Array.from({ length: 10_000 }, (_, n) => (n % 2 === 0 ? 'a' : 'b')));
  });

  it('gives way to connections, 32 for each slice', () => {
    const { waitingWork, done, work, endTurn } = bed();
    work('pages', 4);
    const after: number[] = [];
    for (let accepted = 1; accepted <= 100; accepted++) {
      waitingWork.arrived();
      const before = done.length;
      endTurn();
      if (done.length > before) after.push(accepted);
    }
    expect(after).toEqual([33, 66, 99]);
    endTurn();
    expect(done).toHaveLength(4);
  });
});
