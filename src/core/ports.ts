/** The narrow interfaces that connect components which do not import each other. */
import type { View } from './model.ts';
import type { Component, DropReason } from './reasons.ts';

/** Fields of an entry in the agent's own log. The field `error` is whatever was thrown. */
export type LogFields = Readonly<Record<string, unknown>>;
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'fatal';
export interface Log {
  write(level: LogLevel, msg: string, fields?: LogFields): void;
  /** A log whose entries have `logger: name`. */
  named(name: string): Log;
}

/** Time as a dependency, so that tests can advance it. */
export interface Clock {
  /** Wall clock, ms since the epoch; may jump. */
  nowMs(): number;
  /** Monotonic, ms; never jumps. */
  monotonicMs(): number;
  /** Calls `call` once after `delayMs` of monotonic time; returns a function that cancels it. Never keeps the process alive. */
  after(delayMs: number, call: () => void): () => void;
}

/** Facts about the work of a span. */
type SpanValues = Readonly<Record<string, string | number | boolean>>;

/** Distributed traces of the agent's own work. */
export interface Tracing {
  /**
   * Runs `work` in a span within the current span. `work` may add what it found, and a fault that it does not throw. An error
   * that it throws is recorded and rethrown.
   */
  span<T>(
    name: string,
    values: SpanValues,
    work: (found: (values: SpanValues, fault?: string) => void) => Promise<T>,
  ): Promise<T>;
  /** Headers that pass the current span on (`traceparent`); none while nothing is recorded. */
  headers(): Readonly<Record<string, string>>;
}

/** Counts drops of every kind, in `svc_agent_dropped_total{component,reason}`. */
export interface Drops {
  count(component: Component, reason: DropReason, n?: number): void;
}

/** State that survives a restart in addition to the durable values: offsets, push baselines, failover events. */
export interface Durable {
  /** The key of its section in the snapshot; it never changes between versions. */
  readonly name: string;
  /** Returns the current section, in one synchronous step. Each commit calls it. */
  freeze(): Uint8Array;
  /** Restores the section of the last commit; called once, before anything starts. Throws if it cannot read the section. */
  restore(section: Uint8Array): void;
}

/** Read access to scraped values, for the replication probe. */
export interface Readings {
  /** The newest value of each series of a family, with its labels; empty if there is none. */
  values(family: string): Iterable<{ labels: Readonly<Record<string, string>>; value: number }>;
}

export type Stop = () => Promise<void>;

/**
 * A source. `start` resolves when the source is ready and rejects if it can never be. After that it retries and counts failures.
 */
export interface Source {
  start(): Promise<Stop>;
}

export interface GatherRequest {
  /** Selects series: by reporter block and by `?service=`. */
  takes(series: { service: string; relayed: boolean }): boolean;
  /**
   * The latest monotonic time at which scraped pages may still arrive; with Infinity, each target's own timeout decides.
   * Undefined: the gather fetches no pages (push and hosted).
   */
  deadlineMs?: number;
  /** Called before the view is frozen, at the latest in the same step: a later request cannot share the view. */
  frozen?(): void;
}

/** Waits for what must be fresh, commits, and returns the committed view, which the caller releases. */
export type Gather = (request: GatherRequest) => Promise<View>;

export interface Reporter {
  start(gather: Gather): Promise<Stop>;
}
