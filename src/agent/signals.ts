/** The signals to the process, by their meaning. */
interface Signals {
  /** SIGTERM or SIGINT: a clean stop. */
  stop(): void;
  /** SIGHUP: read the configuration again. */
  reload(): void;
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
