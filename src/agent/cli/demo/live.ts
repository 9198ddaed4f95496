import type { Clock } from '../../../core/ports.ts';

const everyMs = 2000;

/** A line for people from a page of the agent's metrics: what it has counted so far. */
export function liveText(page: string): string {
  const sum = (family: string) => {
    let total = 0;
    for (const line of page.split('\n')) {
      if (line.startsWith(`${family}{`)) total += Number(line.slice(line.lastIndexOf(' ') + 1));
    }
    return total;
  };
  const kilobytes = Math.round(sum('svc_log_bytes_total') / 1000);
  return [
    `${sum('svc_log_entries_total')} log entries (${kilobytes} kB)`,
    `${sum('svc_log_persistence_errors_total')} persistence errors`,
    `${sum('svc_log_lines_dropped_total')} dropped`,
  ].join(', ');
}

/** Rewrites one line of the terminal now and then; a page that does not come leaves the line as it is. */
export function showLive(metrics: string, write: (text: string) => void, clock: Clock): () => void {
  let cancel = () => {};
  async function show() {
    const page = await fetch(metrics).then((answer) => (answer.ok ? answer.text() : undefined));
    if (page !== undefined) write(`\r\u001b[K${liveText(page)}`);
  }
  const wait = () => {
    cancel = clock.after(
      everyMs,
      () =>
        void show()
          .catch(() => {})
          .finally(wait),
    );
  };
  wait();
  return () => cancel();
}
