import type { Log } from '../core/ports.ts';

/** A log whose destination and level a reload may change under those who hold it. */
export interface LogSwitch {
  readonly log: Log;
  /** Entries go to this one from now on. */
  turn(to: Log): void;
}

export function createLogSwitch(first: Log): LogSwitch {
  let current = first;
  const view = (pick: (log: Log) => Log): Log => {
    let of = current;
    let picked = pick(current);
    return {
      write(level, msg, fields) {
        if (of !== current) [of, picked] = [current, pick(current)];
        picked.write(level, msg, fields);
      },
      named: (name) => view((log) => pick(log).named(name)),
    };
  };
  return {
    log: view((log) => log),
    turn(to) {
      current = to;
    },
  };
}
