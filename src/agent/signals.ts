/** Signals to the process. */
interface Signals {
  /** SIGTERM or SIGINT: a clean stop. */
  stop(): void;
  /** SIGHUP: read the configuration again. */
  reload(): void;
}

/** Passes on the process's signals; a second SIGINT or SIGTERM does not repeat the first. Returns the undo. */
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
