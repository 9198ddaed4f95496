import { AgentError } from './errors.ts';

const unitMs = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 } as const;
const allowed = 'use a number and a unit, such as 500ms, 10s, 5m, 1h30m or 7d';

/**
 * A duration string in ms: Go's form (`1h30m`, `1.5s`) plus `d` and `w`. Throws `AgentError` (`timer_invalid`)
 * on anything else, negative durations included.
 */
export function parseDuration(text: string, where = 'duration'): number {
  const wanted = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d|w))+$/;
  if (!wanted.test(text)) {
    throw new AgentError('timer_invalid', { where, what: 'not a duration', got: text, allowed });
  }
  let totalMs = 0;
  for (const [, digits, unit] of text.matchAll(/(\d+(?:\.\d+)?)([a-zµ]+)/g)) {
    totalMs += Number(digits) * unitMs[unit as keyof typeof unitMs];
  }
  return totalMs;
}

/** A span of ms for people: the two largest units, `1d2h`, `3m20s`, `250ms`. */
export function formatDuration(spanMs: number): string {
  if (spanMs < 1000) return `${Math.round(spanMs)}ms`;
  const parts: string[] = [];
  let restMs = spanMs;
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const n = Math.floor(restMs / unitMs[unit]);
    restMs -= n * unitMs[unit];
    if (n > 0 && parts.length < 2) parts.push(`${n}${unit}`);
  }
  return parts.join('');
}
