/** A granted slot. Both parts are released separately; releasing twice has no effect. */
export interface Turn {
  /** Releases the concurrency slot. */
  leave(): void;
  /** Releases the lane. */
  leaveLane(): void;
}

export interface Asked {
  /** One run at a time per lane. */
  lane?: string;
  /** Requested by a person: runs before all others and takes no concurrency slot, but still waits for its lane. */
  isUrgent?: boolean;
  start(turn: Turn): void;
}

/** Limits concurrent runs, and runs per lane to one; first come, first served. */
export interface Turns {
  /** Calls `start` as soon as it may run, possibly at once. Returns a function that withdraws the request. */
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
  /** A request that waits for its lane does not block the ones behind it. */
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
