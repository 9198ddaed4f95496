import type { Clock } from '../../../core/ports.ts';

const everyMs = 2000;

/** What is up or down, by the family that says so. */
const looked = {
  roles: 'svc_role_up',
  stores: 'svc_store_up',
  clusters: 'svc_cluster_up',
  archives: 'svc_archival_up',
};

/** A line for people from a page of the agent's metrics: what it has counted so far, and what of it all is up. */
export function liveText(page: string): string {
  const lines = page.split('\n');
  const values = (family: string) =>
    lines
      .filter((line) => line.startsWith(`${family}{`))
      .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
  const sum = (family: string) => values(family).reduce((total, value) => total + value, 0);
  const up = Object.entries(looked)
    .filter(([, family]) => values(family).length > 0)
    .map(([what, family]) => `${sum(family)}/${values(family).length} ${what}`);
  const kilobytes = Math.round(sum('svc_log_bytes_total') / 1000);
  return [
    `${sum('svc_log_entries_total')} log entries (${kilobytes} kB)`,
    `${sum('svc_log_persistence_errors_total')} persistence errors`,
    `${sum('svc_log_lines_dropped_total')} dropped`,
    `up: ${up.join(' ') || 'nothing yet'}`,
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
