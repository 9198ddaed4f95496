import type { Problem } from '../report.ts';

/** Problems of one kind that nothing explains, as one row: the first, how many, and when the first and the last began. */
export interface Alike {
  /** The earliest. */
  problem: Problem;
  others: readonly Problem[];
  /** RFC 3339. */
  first: string;
  last: string;
}

/** Up to so many of a kind are rows of their own: a reader wants to see each. */
const mostApart = 3;

/** Causes in their order; of a kind and severity that has many, all are one row in the place of the first. */
export function alike(causes: readonly Problem[]): Alike[] {
  const groups = new Map<string, Problem[]>();
  for (const cause of causes) {
    const key = `${cause.kind} ${cause.severity}`;
    groups.set(key, [...(groups.get(key) ?? []), cause]);
  }
  return [...groups.values()].flatMap((group) =>
    group.length > mostApart ? [rowOf(group)] : group.map((one) => rowOf([one])),
  );
}

function rowOf(group: readonly Problem[]): Alike {
  const [problem, ...others] = [...group].sort((a, b) => a.since.localeCompare(b.since));
  return { problem: problem!, others, first: problem!.since, last: (others.at(-1) ?? problem!).since };
}

/**
 * The problems that become incidents: those that no other one explains, and those of them of which nobody knows any more
 * whether they last.
 */
export const incidentsIn = ({ problems }: { problems: readonly Problem[] }): Problem[] =>
  problems.filter(({ causedBy, unreadSince }) => causedBy === undefined || unreadSince !== undefined);
