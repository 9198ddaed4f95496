/** Work that continues while a test waits for something. */
export interface Pulses {
  /** Calls `work` once a second from now on, never twice at a time. */
  pulse(work: () => unknown): void;
  /** Throws the first error of the work. */
  check(): void;
  end(): void;
}

export function createPulses(): Pulses {
  const timers: NodeJS.Timeout[] = [];
  const faults: unknown[] = [];
  return {
    pulse(work: () => unknown) {
      let isBusy = false;
      const beat = async () => {
        if (isBusy) return;
        isBusy = true;
        try {
          await work();
        } catch (thrown) {
          faults.push(thrown);
        } finally {
          isBusy = false;
        }
      };
      timers.push(setInterval(() => void beat(), 1000));
    },
    check() {
      if (faults.length > 0) throw faults[0];
    },
    end() {
      for (const timer of timers) clearInterval(timer);
    },
  };
}
