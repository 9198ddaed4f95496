/** How long to wait before a batch is tried again. */
export interface Backoff {
  /** One more failure; `askedMs`: what the receiver asked for. */
  nextMs(askedMs: number | undefined): number;
  reset(): void;
}

const firstMs = 500;
const mostMs = 60_000;
/** A receiver that asks for more is tried after this: it may have been put right by hand. */
const mostAskedMs = 600_000;

/**
 * Exponential backoff with full jitter: anything between nothing and the whole of it, so that agents that lost a
 * receiver together do not come back together. What a receiver asks for is waited for in full, the jitter on
 * top. `random`: uniform in [0, 1).
 */
export function createBackoff(random: () => number): Backoff {
  let failures = 0;
  return {
    nextMs(askedMs = 0) {
      const spanMs = Math.min(mostMs, firstMs * 2 ** Math.min(failures, 30));
      failures += 1;
      return Math.min(askedMs, mostAskedMs) + random() * spanMs;
    },
    reset() {
      failures = 0;
    },
  };
}

/** A `Retry-After` (RFC 9110, 10.2.3), seconds or date, in ms from now; undefined for anything else. A past date is 0. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // Only the form that RFC 9110 wants: Date.parse takes almost anything.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return undefined;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
