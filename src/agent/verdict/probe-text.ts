import type { ProbeStatus } from '../admin/report.ts';

/** The reason and the message of a probe's last result, less a reason that the message has as words of its own. */
export function reasonOf({ last }: { last?: { reason?: string; msg: string } }): string {
  const reason = last?.reason?.replaceAll('_', ' ') ?? '';
  const msg = last?.msg ?? '';
  return new RegExp(`\\b${reason}\\b`, 'i').test(msg) ? msg : [reason, msg].filter(Boolean).join(': ');
}

/** The phase in which a probe's last run ended: the last that it entered. */
export const phaseOf = ({ last }: Pick<ProbeStatus, 'last'>): string | undefined =>
  Object.keys(last?.phasesMs ?? {}).at(-1);
