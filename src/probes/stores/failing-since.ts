import type { CheckResult, StoreReport } from './store-report.ts';

/** Since when each failing check has failed, by check, ms since the epoch; `readOnly` is since when writes are refused. */
export type FailingSince = Readonly<Partial<Record<string, number>>>;

/** What an earlier poll remembered, as far as it is valid. */
export function readFailingSince(recalled: unknown): FailingSince {
  const { failing } = (recalled ?? {}) as { failing?: unknown };
  if (typeof failing !== 'object' || failing === null) return {};
  return Object.fromEntries(Object.entries(failing).filter(([, atMs]) => typeof atMs === 'number'));
}

/**
 * Since when the checks of a poll have failed. A check that is unknown for a while, because a right is missing, failed all the
 * time if it fails before and after. A time in the future, after the clock was set back, counts as now.
 */
export function failingSince(
  before: FailingSince,
  { readOnly, replica }: Pick<StoreReport, 'readOnly' | 'replica'>,
  checks: readonly CheckResult[],
  nowMs: number,
): FailingSince {
  const isRefusing = readOnly === true && replica !== true;
  const all = [...checks, { check: 'readOnly', holds: !isRefusing }];
  const last = all.flatMap(({ check, holds }) => {
    const knownMs = before[check];
    if (holds === true || (holds === 'unknown' && knownMs === undefined)) return [];
    return [[check, Math.min(knownMs ?? nowMs, nowMs)]];
  });
  return Object.fromEntries(last);
}
