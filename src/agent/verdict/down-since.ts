import type { ProbeStatus, Problem } from '../report.ts';
import type { KindOfProblem } from './kinds.ts';

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
  { kind, name, state, since }: Pick<ProbeStatus, 'kind' | 'name' | 'state' | 'since'>,
  problems: readonly Pick<Problem, 'kind' | 'subject' | 'since'>[],
): string | undefined {
  if (state !== 'down') return since;
  const subject = name.slice(name.indexOf('/') + 1);
  const open = problems.find((one) => one.kind === downKinds[kind] && one.subject === subject);
  return open && (since === undefined || open.since < since) ? open.since : since;
}
