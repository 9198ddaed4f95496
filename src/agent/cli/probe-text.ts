import type { Looked } from '../../probes/runner/once.ts';
import { table } from './table.ts';

/** One line a probe: what was found, and how long it took. */
export function probeTable(looked: readonly Looked[], colour: boolean): string {
  const rows = looked.map(({ row, result }) => [
    row.name,
    result.ok ? 'ok' : (result.reason ?? 'failed'),
    `${Math.round(result.durationMs)} ms`,
    result.msg,
    row.target,
  ]);
  return table(['PROBE', 'RESULT', 'TOOK', 'WHAT', 'TARGET'], rows, colour);
}

/** A check of a store as its finding explains it. */
interface Explained {
  check: string;
  holds: boolean | 'unknown';
  found: string;
  why?: string;
  set?: string;
  restart?: string;
}

const checksOf = ({ result }: Looked): readonly Explained[] =>
  (result.details?.checks as readonly Explained[] | undefined) ?? [];

/** Below the table: what of each store does not hold or cannot be known, why it matters and what to set. */
export function adviceText(looked: readonly Looked[]): string {
  const parts = looked.flatMap((one) => {
    const failing = checksOf(one).filter(({ holds }) => holds === false);
    const unknown = checksOf(one).filter(({ holds }) => holds === 'unknown');
    if (failing.length + unknown.length === 0) return [];
    return [
      '',
      one.row.name,
      ...failing.flatMap(({ check, found, why, set, restart }) => [
        `  ${check} does not hold: ${found}`,
        ...(why ? [`    ${why}`] : []),
        ...(set ? [`    ${set} (${restart})`] : []),
      ]),
      ...(unknown.length > 0
        ? [
            `  not known: ${unknown.map(({ check, found }) => `${check} (${found})`).join(', ')}`,
            '    where rights are lacking, svc-agent probe --print-grants prints them',
          ]
        : []),
    ];
  });
  return parts.length === 0 ? '' : `${parts.join('\n')}\n`;
}
