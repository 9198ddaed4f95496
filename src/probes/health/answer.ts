import type { HealthFailureReason } from '../../core/reasons.ts';
import { excerpt } from '../probe-error.ts';
import type { HealthFault } from './failure.ts';

/** What a role says of itself (spec, Health response). */
export interface HealthAnswer {
  ok: boolean;
  msg: string;
}

/** What words of a message tell, the most telling first: what is shut down has left the ring, too. */
const tellings: readonly (readonly [HealthFailureReason, RegExp])[] = [
  ['shutting_down', /\b(shutting ?down|shut ?down|stopping|draining|terminating)\b/],
  ['persistence', /\b(persistence|data ?store|database)\b/],
  ['not_in_ring', /\b(hash ?ring|ring|membership|not (yet )?a member)\b/],
  ['warming_up', /\b(warming ?up|warm ?up|starting|not (yet )?started|initiali[sz]ing)\b/],
];

/** `WarmingUp`, `warming_up` and `Warming up` are the same words. */
const wordsOf = (msg: string): string =>
  msg
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[^A-Za-z0-9]+/g, ' ')
    .toLowerCase();

/** Why a role is not well, as far as its message tells. */
export function reasonOf(msg: string): HealthFailureReason {
  const words = wordsOf(msg);
  return tellings.find(([, telling]) => telling.test(words))?.[0] ?? 'not_ok';
}

/** What is wrong by an answer; undefined when the role is well. */
export function faultOf({ ok, msg }: HealthAnswer): HealthFault | undefined {
  if (ok) return undefined;
  return { reason: reasonOf(msg), msg: excerpt(msg) || 'not ok, without a message' };
}

const isText = (value: unknown): value is string => typeof value === 'string';

/**
 * The answer in a JSON text; undefined for any other text. Where `ok` is missing it is false, but only beside
 * nothing else than a message: writers of proto3 JSON leave out what is false, and call `msg` `message`.
 */
export function answerIn(text: string): HealthAnswer | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { ok, msg, message, ...rest } = value as Record<string, unknown>;
  const said = [msg, message].find(isText);
  if (typeof ok === 'boolean') return { ok, msg: said ?? '' };
  const isBare = ok === undefined && said !== undefined && Object.keys(rest).length === 0;
  return isBare ? { ok: false, msg: said } : undefined;
}
