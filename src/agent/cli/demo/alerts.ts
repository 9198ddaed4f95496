import type { Clock } from '../../../core/ports.ts';

interface Alert {
  fingerprint: string;
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
  status: { state: 'active' | 'suppressed' | 'unprocessed'; inhibitedBy: readonly string[] };
}

const everyMs = 2000;

/** What has changed between two answers of Alertmanager, a line for each alert. */
export function alertLines(before: ReadonlyMap<string, Alert>, now: ReadonlyMap<string, Alert>): string[] {
  const named = ({ labels }: Alert) => `${labels.alertname} (${labels.severity ?? 'no severity'})`;
  const lines = [...now.values()].flatMap((alert) => {
    const { fingerprint, annotations, status } = alert;
    if (before.get(fingerprint)?.status.state === status.state) return [];
    if (status.state === 'active') return [`alert fires: ${named(alert)} ${annotations.summary ?? ''}`];
    return status.state === 'suppressed'
      ? [`alert inhibited, another one explains it: ${named(alert)} ${annotations.summary ?? ''}`]
      : [];
  });
  const over = [...before.values()].filter(
    ({ fingerprint, status }) => status.state !== 'unprocessed' && !now.has(fingerprint),
  );
  return [...lines, ...over.map((alert) => `alert over: ${named(alert)}`)];
}

/**
 * Follows what Alertmanager has, and says what changes. Says nothing as long as nobody answers: it may be started
 * later. Returns the end.
 */
export function followAlerts(alertmanager: string, say: (line: string) => void, clock: Clock): () => void {
  let cancel = () => {};
  const ended = new AbortController();
  let known = new Map<string, Alert>();
  async function look() {
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(everyMs)]);
    const response = await fetch(`${alertmanager}/api/v2/alerts`, { signal });
    if (!response.ok) return;
    const alerts = (await response.json()) as Alert[];
    const now = new Map(alerts.map((alert) => [alert.fingerprint, alert]));
    for (const line of alertLines(known, now)) say(line);
    known = now;
  }
  const wait = () => {
    if (ended.signal.aborted) return;
    cancel = clock.after(
      everyMs,
      () =>
        void look()
          .catch(() => {})
          .finally(wait),
    );
  };
  wait();
  return () => {
    ended.abort();
    cancel();
  };
}
