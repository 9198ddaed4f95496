import type { ClientAuth, ClientTls } from '../../core/access.ts';

/** Limits of a page. A page that exceeds one is discarded. */
export interface ScrapeLimits {
  /** Bytes of the page after decompression. */
  bodyBytes: number;
  samples: number;
  /** Bytes of one label's value, or of any name. */
  labelBytes: number;
}

/** `services.<service>.scrape`, defaults filled in. */
export interface ScrapeOptions {
  url: string;
  intervalMs: number;
  timeoutMs: number;
  /** For an `https:` target. Files are read again for each new connection. */
  tls?: ClientTls;
  auth?: ClientAuth;
  /** Default: `scrapeDefaults.limits`. */
  limits?: ScrapeLimits;
}

export const scrapeDefaults = {
  intervalMs: 15_000,
  timeoutMs: 10_000,
  limits: { bodyBytes: 64 * 1024 * 1024, samples: 500_000, labelBytes: 8192 },
} as const;
