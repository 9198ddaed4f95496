/** The narrow interfaces by which components meet without importing each other. */
import type { View } from './model.ts';
import type { Component, DropReason } from './reasons.ts';

/** The agent's own log. Fields are contextual; `error` keeps the thrown thing. */
export type LogFields = Readonly<Record<string, unknown>>;
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'fatal';
export interface Log {
  write(level: LogLevel, msg: string, fields?: LogFields): void;
  /** A log whose entries carry `logger: name`. */
  named(name: string): Log;
}

/** Time, so that tests can move it by hand. */
export interface Clock {
  /** Wall clock, ms since the epoch; may jump. */
  nowMs(): number;
  /** Monotonic, ms; never jumps. */
  monotonicMs(): number;
  /** Calls back once after `delayMs` of monotonic time; returns the cancel. Never keeps the process alive. */
  after(delayMs: number, call: () => void): () => void;
}

/** Counts every drop of every kind; shows as `svc_agent_dropped_total{component,reason}`. */
export interface Drops {
  count(component: Component, reason: DropReason, n?: number): void;
}

/** What survives a restart besides the durable values: offsets, push baselines, failover events. */
export interface Durable {
  /** Key of its section in the snapshot; never changes between versions. */
  readonly name: string;
  /** The section as of now, in one synchronous step; called at each commit's freeze. */
  freeze(): Uint8Array;
  /** The section as last committed; called once, before anything starts. Throws on what it cannot read. */
  restore(section: Uint8Array): void;
}

/** Scraped values that others may look at (replication lag), without owning the scrape. */
export interface Readings {
  /** The newest value of each series of a family, with its labels; empty when unknown. */
  look(family: string): Iterable<{ labels: Readonly<Record<string, string>>; value: number }>;
}

export type Stop = () => Promise<void>;

/** Resolves when it is at work, rejects when it never can be; afterwards it retries by itself and counts. */
export interface Source {
  start(): Promise<Stop>;
}

/** What a gather is asked for. */
export interface GatherRequest {
  /** Only series that this predicate takes; routing of blocks and `?service=`. */
  takes(series: { service: string; relayed: boolean }): boolean;
  /**
   * Latest monotonic moment at which scraped pages may still come in; with Infinity, each target's own timeout
   * decides. Undefined: the gather fetches no pages (push and hosted).
   */
  deadlineMs?: number;
  /** Called before the picture is frozen, at the latest in that very step: whoever asks later cannot share it. */
  frozen?(): void;
}

/** Awaits what must be fresh, commits, and hands out the committed view. The caller releases it. */
export type Gather = (request: GatherRequest) => Promise<View>;

export interface Reporter {
  start(gather: Gather): Promise<Stop>;
}
