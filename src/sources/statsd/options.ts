import type { ListenerTls } from '../../core/access.ts';

/** The form of tags: any of the four, one of them only, or none. */
export const statsdTagFormats = ['auto', 'suffix', 'dogstatsd', 'influx', 'librato', 'none'] as const;
export type StatsdTagFormat = (typeof statsdTagFormats)[number];

/** `services.<service>.statsd`, defaults filled in. At least one of `listen`, `tcp` and `unix` is there. */
export interface StatsdOptions {
  /** host:port for datagrams; port 0 selects a free port. */
  listen?: string;
  /** host:port for newline-separated streams. */
  tcp?: string;
  /** Of the streams over TCP; there only with `tcp`. */
  tls?: ListenerTls;
  /** Path of a stream socket, lines as over TCP. Whoever may enter its directory may write to it. */
  unix?: string;
  /** Addresses or CIDR ranges of allowed senders; if empty, this machine only. */
  senders: readonly string[];
  /** Kernel's receive buffer asked for; a kernel gives no more than `net.core.rmem_max` allows. */
  receiveBufferBytes: number;
  /** Default `auto`. */
  tagFormat?: StatsdTagFormat;
  /** Further tag names of the suffix form, which can only be told from values by being known. */
  tagKeys?: readonly string[];
  /** First part of every name; removed together with the dot after it. */
  prefix?: string;
  /** A series ends after this time without a line. Default: `statsdDefaults.expireMs`. */
  expireMs?: number;
}

export const statsdDefaults = {
  /** Long: a rare counter (a restart) that ends and comes back is an increase that no `rate()` sees. */
  expireMs: 24 * 3_600_000,
  /** Bytes of a line; what DogStatsD sends at most over a Unix socket. */
  lineBytes: 8192,
  /** Streams at once, TCP and Unix together no more than twice this. */
  connections: 128,
} as const;
