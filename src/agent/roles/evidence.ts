import type { ProbeFailureReason } from '../../core/reasons.ts';

/** Whether a process answers, as a health check tells; `fresh`: it says that it has just begun. */
export type Life = 'there' | 'fresh' | 'away';

const lives: Partial<Record<ProbeFailureReason, Life>> = {
  refused: 'away',
  shutting_down: 'away',
  warming_up: 'fresh',
  not_ok: 'there',
  not_in_ring: 'there',
  persistence: 'there',
  http_status: 'there',
  invalid_answer: 'there',
  unimplemented: 'there',
};

/** Undefined where the result says nothing of the process: a path that is broken is no restart. */
export const lifeOf = (reason: ProbeFailureReason | undefined): Life | undefined =>
  reason === undefined ? 'there' : lives[reason];

/** Whether a process that was `before` and is `now` began in between. */
export const isBirth = (before: Life | undefined, now: Life): boolean =>
  (before === 'away' && now !== 'away') || (before === 'there' && now === 'fresh');

/** Of `counters` on two pages in a row `fallen` fell. A single series may fall for its own reasons, a share may not. */
export const isReset = ({ fallen, counters }: { fallen: number; counters: number }): boolean =>
  fallen > 0 && fallen * 5 >= counters;

/** A number of a page by which two lives of a process are told apart, across the agent's own restarts. */
export interface Witness {
  family: string;
  value: number;
}

/** In the order of how much they tell: when the process began, how often it collected garbage. */
export const witnessFamilies = ['process_start_time_seconds', 'svc_memory_num_gc'] as const;

export function isOtherLife(before: Witness | undefined, now: Witness | undefined): boolean {
  if (!before || !now || before.family !== now.family) return false;
  return now.family === 'process_start_time_seconds'
    ? now.value > before.value + 1
    : now.value < before.value;
}
