import { errorText } from '../../../core/errors.ts';
import type { Clock, Log } from '../../../core/ports.ts';
import { nextTurn } from '../../../core/slices.ts';

/** Cuts long work into slices, so that other tasks wait no longer than one of them. */
export interface Slices {
  spent(): boolean;
  /** Lets other tasks run, then begins a new slice. */
  turn(): Promise<void>;
  /** Runs work that is cut into slices. One call at a time. */
  run(work: () => Promise<void>): Promise<void>;
  /** Runs `other` between two slices; no slice begins before it ends. One call at a time. */
  interrupt(other: () => Promise<void>): Promise<void>;
}

export function createSlices(clock: Clock, sliceMs: number, wait = nextTurn): Slices {
  let beganMs = clock.monotonicMs();
  let isInSlice = false;
  let interruption: Promise<void> | undefined;
  let sliceEnded = () => {};

  const begin = () => {
    isInSlice = true;
    beganMs = clock.monotonicMs();
  };
  const end = () => {
    isInSlice = false;
    sliceEnded();
  };
  return {
    spent: () => clock.monotonicMs() - beganMs >= sliceMs,
    async turn() {
      end();
      await wait();
      while (interruption !== undefined) await interruption;
      begin();
    },
    async run(work) {
      while (interruption !== undefined) await interruption;
      begin();
      await work().finally(end);
    },
    async interrupt(other) {
      let over = () => {};
      interruption = new Promise((resolve) => {
        over = resolve;
      });
      if (isInSlice)
        await new Promise<void>((resolve) => {
          sliceEnded = resolve;
        });
      await other().finally(() => {
        interruption = undefined;
        over();
      });
    },
  };
}

/**
 * Decides when to scan and when to poll, by one timer: a poll reads the files that changed lately, a scan finds the
 * files. What a scan costs, reading aside, decides how soon the next one may follow; no wait between two is longer than 2 s.
 */
interface Schedule {
  begin(): void;
  /** Something happened in a directory: scans soon. */
  ring(): void;
  end(): void;
}

const pollIntervalMs = 250;
const scanIntervalMs = 1_000;
/** With very many files a scan costs; it then gets rarer, up to here, to cost no more than a hundredth. */
const scanIntervalLimitMs = 2_000;
const scanCostShare = 100;
/** Events come in bursts; one scan serves those of this long. */
const burstMs = 100;
const burstCostShare = 20;

interface ScheduleDeps {
  clock: Clock;
  log: Log;
  tailer: {
    scan(): Promise<void>;
    poll(): Promise<void>;
    readonly isActive: boolean;
    readonly scanCostMs: number;
  };
  /** Called after each scan. */
  scanned(): void;
}

export function createSchedule({ clock, log, tailer, scanned }: ScheduleDeps): Schedule {
  let cancel = () => {};
  let isRung = false;
  let isBusy = false;
  let isOver = false;
  let beganMs = clock.monotonicMs();
  let failure = '';

  const intervalMs = () => {
    const costMs = tailer.scanCostMs;
    const wantedMs = isRung
      ? Math.max(burstMs, burstCostShare * costMs)
      : Math.max(scanIntervalMs, scanCostShare * costMs);
    return Math.min(scanIntervalLimitMs, wantedMs);
  };

  const plan = () => {
    if (isBusy || isOver) return;
    cancel();
    const dueMs = Math.max(isRung ? burstMs / 2 : 0, beganMs + intervalMs() - clock.monotonicMs());
    cancel = clock.after(tailer.isActive ? Math.min(pollIntervalMs, dueMs) : dueMs, () => void tick());
  };

  const scan = async () => {
    isRung = false;
    beganMs = clock.monotonicMs();
    await tailer.scan();
    scanned();
  };

  const tick = async () => {
    isBusy = true;
    try {
      await (clock.monotonicMs() >= beganMs + intervalMs() ? scan() : tailer.poll());
      failure = '';
    } catch (thrown) {
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
