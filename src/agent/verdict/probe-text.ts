import { compareText } from '../../core/registry/labels.ts';
import type { ProbeStatus, Problem } from '../report.ts';
import type { KindOfProblem } from './kinds.ts';

/** The part of a probe's name after its kind: `history` in `health/history`. */
export const subjectOf = ({ name }: { name: string }): string => name.slice(name.indexOf('/') + 1);

/** Plain words for the system errors of a connection, without and with the address that follows. */
const connectionTexts: Readonly<Record<string, readonly [alone: string, before: string]>> = {
  ECONNREFUSED: ['connection refused', 'connection refused by'],
  EHOSTUNREACH: ['no route', 'no route to'],
  ENETUNREACH: ['no route', 'no route to'],
  ETIMEDOUT: ['no answer', 'no answer from'],
  ENOTFOUND: ['no address found', 'no address found for'],
};
const connectionError = /\b(?:connect|getaddrinfo) (E[A-Z]+)\b(?: (\S+))?/g;

/** An IPv6 address and a port, which Node writes without brackets. */
const bareAddress = /^((?:[\da-f]*:){2,}[\da-f]*):(\d+)\b/;

/** The message of a probe, with system errors in plain words: `connection refused by 127.0.0.1:5432`. */
export const messageOf = (msg: string): string =>
  msg.replace(connectionError, (text: string, code: string, address?: string) => {
    const [alone, before] = connectionTexts[code] ?? [];
    if (alone === undefined) return text;
    return address === undefined ? alone : `${before} ${address.replace(bareAddress, '[$1]:$2')}`;
  });

/** The reason and the message of a probe's last result. The reason is left out if the message contains its words. */
export function reasonOf({ last }: { last?: { reason?: string; msg: string } }): string {
  const reason = last?.reason?.replaceAll('_', ' ') ?? '';
  const msg = last?.msg ?? '';
  const text = messageOf(msg);
  const saysReason = text !== msg || new RegExp(`\\b${reason}\\b`, 'i').test(msg);
  return saysReason ? text : [reason, text].filter(Boolean).join(': ');
}

/** Whether a domain can fail over, and why not; `ready` is undefined if that is not known. Undefined for a local domain. */
export const failoverOf = ({
  last,
}: Pick<ProbeStatus, 'last'>): { ready?: boolean; why?: string } | undefined =>
  last?.details?.failover as { ready?: boolean; why?: string } | undefined;

/** The phase in which a probe's last run ended: the last phase that it entered. */
export const phaseOf = ({ last }: Pick<ProbeStatus, 'last'>): string | undefined =>
  Object.keys(last?.phasesMs ?? {}).at(-1);

/** The kind of problem of a failing target, by the kind of its probe. */
export const downKinds: Readonly<Record<string, KindOfProblem>> = {
  health: 'role_down',
  store: 'store_down',
  cluster: 'cluster_down',
  domain: 'domain',
  replication: 'replication',
  archive: 'archive_down',
  backup: 'backup_failed',
  recovery: 'recovery',
  rehearsal: 'not_proven',
};

/**
 * Since when a target has been in its present state, RFC 3339; undefined if that is not known. A probe begins anew with each start
 * of the agent; the verdict remembers when the target went down.
 */
export function sinceOf(
  probe: Pick<ProbeStatus, 'kind' | 'name' | 'state' | 'since'>,
  problems: readonly Pick<Problem, 'kind' | 'subject' | 'since'>[],
): string | undefined {
  const { kind, state, since } = probe;
  if (state !== 'down') return since;
  const subject = subjectOf(probe);
  const open = problems.find((one) => one.kind === downKinds[kind] && one.subject === subject);
  return [open?.since, since].filter((one) => one !== undefined).sort(compareText)[0];
}
