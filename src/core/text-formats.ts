import { parseAddress } from './address.ts';
import { AgentError } from './errors.ts';
import { withoutCredentials } from './redacted.ts';

const unitMs = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 } as const;
const allowed = 'use a number and a unit, such as 500ms, 10s, 5m, 1h30m or 7d';

/**
 * Parses a duration into ms: Go's form (`1h30m`, `1.5s`) plus `d` and `w`. Throws `AgentError` (`timer_invalid`) for anything
 * else, including negative durations.
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

/** A number with at most three decimals, as people read it; ms are then exact to the microsecond. */
export const toThousandths = (value: number): number => Math.round(value * 1000) / 1000;

/** A duration in ms as text with its two largest units: `1d2h`, `3m20s`, `250ms`. */
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

/**
 * An excerpt from another program's text for a message: one line of at most `most` characters, without credentials, control
 * characters, lone surrogates and characters that change the direction of text.
 */
export function excerpt(text: string, most = 200): string {
  // Removed characters do not count in the result, but a text of megabytes is not scanned as a whole.
  const characters = [
    ...withoutCredentials(text.slice(0, 20 * most))
      .replace(/[\p{Cc}\p{Cs}\p{Bidi_Control}\s]+/gu, ' ')
      .trim(),
  ];
  return characters.length > most ? `${characters.slice(0, most).join('')}…` : characters.join('');
}

/** Whether a text can be the value of an HTTP header: without line breaks, other control characters and characters above U+00FF. */
export const isHeaderText = (text: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(text);

export interface TextFormat<T> {
  /** The message for text of another format: `what is wrong; what is allowed`. */
  readonly fault: string;
  /** The value, or undefined for text of another format. */
  read(text: string): T | undefined;
}

/** The context in which a schema's transformation reports an error. zod's context has this shape; core does not import zod. */
interface SchemaContext {
  addIssue(issue: { code: 'custom'; message: string; input: unknown }): void;
}

/** A format as a schema's transformation. */
export function parsedAs<T>({ fault, read }: TextFormat<T>): (text: string, refusal: SchemaContext) => T {
  return (text, refusal) => {
    const value = read(text);
    if (value === undefined) refusal.addIssue({ code: 'custom', message: fault, input: text });
    return value as T;
  };
}

/** A duration in ms between two bounds, or undefined. */
function durationBetween(text: string, leastMs: number, mostMs: number): number | undefined {
  try {
    const spanMs = parseDuration(text);
    return spanMs >= leastMs && spanMs <= mostMs ? spanMs : undefined;
  } catch {
    return undefined;
  }
}

/** A duration that a timer waits: an interval or a time-out. */
export const interval: TextFormat<number> = {
  fault: 'not a duration from 1ms to 7d; use a number and a unit, such as 500ms, 10s, 5m or 1h30m',
  read: (text) => durationBetween(text, 1, 7 * 864e5),
};

/** A duration that no timer waits for, such as an age. It may be 0. */
export const span: TextFormat<number> = {
  fault: 'not a duration; use a number and a unit, such as 0s, 5m, 1h30m or 30d',
  read: (text) => durationBetween(text, 0, Number.MAX_SAFE_INTEGER),
};

/** The address of one of the agent's own listeners; port 0 means any free port. */
export const listenAddress: TextFormat<string> = {
  fault: 'not an address; use host:port, such as 127.0.0.1:9464, 0.0.0.0:9464 or [::1]:9464',
  read: (text) => (parseAddress(text) ? text : undefined),
};

export const readDialAddress = (text: string): string | undefined =>
  parseAddress(text)?.port ? text : undefined;

/** The address of another listener; `example` is an address of the same kind. */
export const dialAddress = (example: string): TextFormat<string> => ({
  fault: `not an address; use host:port, such as ${example}`,
  read: readDialAddress,
});

/** The address of a program that receives statsd. */
export const statsdAddress = dialAddress('127.0.0.1:8125');

const alternatives = (words: readonly string[]): string =>
  words.length < 2 ? (words[0] ?? 'none') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

/** A URL with one of these schemes, a host and no credentials. */
export function webAddress(schemes: readonly string[], example: string): TextFormat<string> {
  const list = alternatives(schemes);
  return {
    fault: `not a URL of ${list} without credentials; use the form ${example}`,
    read(text) {
      if (!URL.canParse(text)) return undefined;
      const { protocol, hostname, username, password } = new URL(text);
      return schemes.includes(protocol.slice(0, -1)) && hostname !== '' && username === '' && password === ''
        ? text
        : undefined;
    },
  };
}

/** The rule for a list of histogram bounds. */
export const ascending = {
  fault: 'not above the bound before it; use each bound once, the smallest first',
  /**
   * The index of the first bound that is not above the bound before it; -1 if all are. Ignores elements that are not numbers.
   */
  brokenAt: (bounds: readonly unknown[]): number =>
    bounds.findIndex((bound, index) => {
      const before = bounds[index - 1];
      return typeof bound === 'number' && typeof before === 'number' && bound <= before;
    }),
};

/** The rule for a timeout: at most the interval. */
export const withinInterval = {
  fault: 'longer than the interval; use at most the interval',
  /** Whether the rule holds. Ignores values that are not numbers, which are reported separately. */
  holds: ({ interval, timeout }: { interval?: unknown; timeout?: unknown }): boolean =>
    !(typeof interval === 'number' && typeof timeout === 'number' && timeout > interval),
  /** The configured timeout, or else the default timeout, but at most the interval. */
  timeoutMs: (setMs: number | undefined, usualMs: number, intervalMs: number): number =>
    setMs ?? Math.min(usualMs, intervalMs),
};

/**
 * The rule for a text with placeholders such as `{file}`; `${file}` and `{ file }` belong to a shell, and are plain text here.
 */
export const placeholders = (known: readonly string[]) => ({
  fault: `an unknown placeholder; use ${alternatives(known.map((name) => `{${name}}`))}`,
  holds: (text: string): boolean =>
    [...text.matchAll(/(?<!\$)\{([a-z]+)\}/gi)].every(([, name]) => known.includes(name!)),
});

export interface ObjectStoreAddress {
  /** Scheme, host and port. */
  origin: string;
  /** The URL before the bucket, without a slash at the end. */
  basePath: string;
}

const web = webAddress(['http', 'https'], 'https://s3.example.com');
const hostName = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;

/** The address of an object store; without a scheme it is reached by https. */
export const objectStoreAddress: TextFormat<ObjectStoreAddress> = {
  fault: 'not an endpoint; use the form https://s3.example.com, host or host:port',
  read(text) {
    const isBare = hostName.test(text) || Boolean(parseAddress(text)?.port);
    const whole = web.read(isBare ? `https://${text}` : text);
    if (whole === undefined) return undefined;
    const { origin, pathname, search, hash } = new URL(whole);
    return search === '' && hash === '' ? { origin, basePath: pathname.replace(/\/+$/, '') } : undefined;
  },
};
