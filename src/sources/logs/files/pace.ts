import { errorText } from '../../../core/errors.ts';
import type { Clock, Log } from '../../../core/ports.ts';
import type { Tailer } from './tailer.ts';

/** Decides when to look, by one timer: often while files change, seldom while they do not. */
export interface Pace {
  begin(): void;
  /** Something happened: looks soon. */
  ring(): void;
  end(): void;
}

const glanceIntervalMs = 250;
const lookIntervalMs = 1_000;
/** With very many files a look costs; it then gets rarer, up to here, to cost no more than a hundredth. */
const lookIntervalLimitMs = 5_000;
const lookCostShare = 100;
/** Events come in bursts; one look serves those of this long. */
const burstMs = 100;
const burstCostShare = 20;

interface PaceDeps {
  clock: Clock;
  log: Log;
  tailer: Pick<Tailer, 'look' | 'glance' | 'isActive'>;
  /** Called after each look. */
  looked(): void;
}

export function createPace({ clock, log, tailer, looked }: PaceDeps): Pace {
  let cancel = () => {};
  let isRung = false;
  let isBusy = false;
  let isOver = false;
  let lookedMs = clock.monotonicMs();
  let costMs = 0;
  let failure = '';

  const dueMs = () =>
    isRung
      ? lookedMs + Math.max(burstMs, burstCostShare * costMs)
      : lookedMs + Math.max(lookIntervalMs, Math.min(lookIntervalLimitMs, lookCostShare * costMs));

  const plan = () => {
    if (isBusy || isOver) return;
    cancel();
    const nowMs = clock.monotonicMs();
    const waitMs = Math.max(isRung ? burstMs / 2 : 0, dueMs() - nowMs);
    cancel = clock.after(tailer.isActive ? Math.min(glanceIntervalMs, waitMs) : waitMs, () => void tick());
  };

  const look = async () => {
    const beganMs = clock.monotonicMs();
    isRung = false;
    await tailer.look();
    lookedMs = clock.monotonicMs();
    costMs = lookedMs - beganMs;
    looked();
  };

  const tick = async () => {
    isBusy = true;
    try {
      await (clock.monotonicMs() >= dueMs() ? look() : tailer.glance());
      failure = '';
    } catch (thrown) {
      lookedMs = clock.monotonicMs();
      if (failure !== errorText(thrown))
        log.write('error', 'log files cannot be read', { error: errorText(thrown) });
      failure = errorText(thrown);
    }
    isBusy = false;
    plan();
  };

  return {
    begin: () => void tick(),
    ring() {
      if (isRung) return;
      isRung = true;
      plan();
    },
    end() {
      isOver = true;
      cancel();
    },
  };
}
