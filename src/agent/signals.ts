import { setTimeout as wait } from 'node:timers/promises';

/** The signals to the process, by their meaning. */
interface Signals {
  /** SIGTERM or SIGINT: a clean stop. */
  stop(): void;
  /** SIGHUP: read the configuration again. */
  reload(): void;
}

/**
 * Whether a request to the file system or to the name resolution is under way. Node.js joins the threads that serve requests
 * before it exits, so that a request that hangs, for example on a pipe or on a file server that is gone, keeps the process from
 * exiting.
 */
export const isWaitingForThreads = (): boolean =>
  process.getActiveResourcesInfo().some((one) => /^(?:FSReq|FileHandleCloseReq|GetAddrInfoReq)/.test(one));

const pauseMs = 10;

/** Waits until no such request is under way, for this long at most. */
export async function threadsDone(mostMs: number): Promise<void> {
  for (let waitedMs = 0; isWaitingForThreads() && waitedMs < mostMs; waitedMs += pauseMs) await wait(pauseMs);
}

/** Handles the process's signals; a second SIGINT or SIGTERM has no effect. Returns the undo. */
export function onSignals(signals: Signals): () => void {
  let stopping = false;
  const stop = () => {
    if (!stopping) signals.stop();
    stopping = true;
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.on('SIGHUP', signals.reload);
  return () => {
    process.off('SIGTERM', stop);
    process.off('SIGINT', stop);
    process.off('SIGHUP', signals.reload);
  };
}
