import type { ProbeStatus } from '../admin/report.ts';

/** The reason and the message of a probe's last result, less a reason that the message repeats. */
export function reasonOf({ last }: { last?: { reason?: string; msg: string } }): string {
  const reason = last?.reason?.replaceAll('_', ' ') ?? '';
  const msg = last?.msg ?? '';
  return msg.toLowerCase().includes(reason) ? msg : [reason, msg].filter(Boolean).join(': ');
}

/** The phase in which a probe's last run ended: the last that it entered. */
export const phaseOf = ({ last }: Pick<ProbeStatus, 'last'>): string | undefined =>
  Object.keys(last?.phasesMs ?? {}).at(-1);
