import type { Problem } from '../report.ts';

/** Problems of one kind that nothing explains, in one row: the first, their number, and when the first and the last began. */
export interface Alike {
  /** The problem that began first. */
  problem: Problem;
  others: readonly Problem[];
  /** When the first problem began, RFC 3339. */
  first: string;
  last: string;
}

/** Up to this many problems of a kind have a row of their own, because a reader wants to see each of them. */
const mostApart = 3;

/**
 * If there are many causes of a kind and severity, merges them into one row, in the place of the first cause. The order stays.
 */
export function alike(causes: readonly Problem[]): Alike[] {
  const groups = new Map<string, Problem[]>();
  for (const cause of causes) {
    const key = `${cause.kind} ${cause.severity}`;
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(cause);
  }
  return [...groups.values()].flatMap((group) =>
    group.length > mostApart ? [rowOf(group)] : group.map((one) => rowOf([one])),
  );
}

function rowOf(group: readonly Problem[]): Alike {
  const [problem, ...others] = [...group].sort((a, b) => Date.parse(a.since) - Date.parse(b.since));
  return { problem: problem!, others, first: problem!.since, last: (others.at(-1) ?? problem!).since };
}

/**
 * The problems that become incidents: those that no other problem explains, including problems that are no longer known to last.
 */
export const incidentsIn = ({ problems }: { problems: readonly Problem[] }): Problem[] =>
  problems.filter(({ causedBy, unreadSince }) => causedBy === undefined || unreadSince !== undefined);
