/** Leave to run. Both halves are given back by themselves, each once however often it is called. */
export interface Turn {
  /** Gives the place among those that run at once to the next. */
  leave(): void;
  /** Lets the next of the same lane run. */
  leaveLane(): void;
}

export interface Asked {
  /** Of one lane one runs at a time. */
  lane?: string;
  /** Somebody waits for it: goes before all others and takes no place, but keeps to its lane. */
  isUrgent?: boolean;
  start(turn: Turn): void;
}

/** Decides who may run: so many at once, one of each lane, in the order in which they asked. */
export interface Turns {
  /** Calls `start` as soon as it may run, perhaps at once. Returns how to withdraw before that. */
  ask(asked: Asked): () => void;
}

export function createTurns({ concurrency }: { concurrency: number }): Turns {
  const urgent = new Set<Asked>();
  const waiting = new Set<Asked>();
  const busyLanes = new Set<string>();
  let running = 0;

  const once = (give: () => void) => {
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      give();
      pump();
    };
  };
  const mayRun = ({ lane, isUrgent }: Asked) =>
    (isUrgent || running < concurrency) && (lane === undefined || !busyLanes.has(lane));

  const start = (asked: Asked) => {
    const { lane, isUrgent } = asked;
    const places = isUrgent ? 0 : 1;
    running += places;
    if (lane !== undefined) busyLanes.add(lane);
    asked.start({
      leave: once(() => {
        running -= places;
      }),
      leaveLane: once(() => {
        if (lane !== undefined) busyLanes.delete(lane);
      }),
    });
  };
  /** Who waits for its lane stands in nobody's way. */
  const pump = () => {
    for (const queue of [urgent, waiting]) {
      for (const asked of queue) if (mayRun(asked) && queue.delete(asked)) start(asked);
    }
  };

  return {
    ask(asked) {
      const queue = asked.isUrgent ? urgent : waiting;
      queue.add(asked);
      pump();
      return () => void queue.delete(asked);
    },
  };
}
