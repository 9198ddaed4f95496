import type { Clock, Log } from '../../../core/ports.ts';

/** Disk trouble of the queue: told once per period while it lasts, not with each batch. */
export interface DiskTrouble {
  failed(error: unknown): void;
  works(): void;
}

const periodMs = 60_000;

export function createDiskTrouble({
  clock,
  log,
  count,
}: {
  clock: Clock;
  log: Log;
  count(): void;
}): DiskTrouble {
  let toldMs: number | undefined;
  return {
    failed(error) {
      const nowMs = clock.monotonicMs();
      if (toldMs !== undefined && nowMs - toldMs < periodMs) return;
      if (toldMs === undefined)
        log.write('error', 'the queue cannot be kept on disk, memory is used', { error });
      toldMs = nowMs;
      count();
    },
    works() {
      if (toldMs !== undefined) log.write('info', 'the queue is kept on disk again');
      toldMs = undefined;
    },
  };
}
