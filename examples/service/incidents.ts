import { type Role, roles } from '../../src/core/catalog.ts';
import type { Random } from './random.ts';
import { taskLists } from './world.ts';

export const incidentKinds = ['persistence-errors', 'restart', 'backlog', 'fatal'] as const;
export type IncidentKind = (typeof incidentKinds)[number];

/** Something goes wrong; the target is a task list of a backlog, of every other kind a role. */
export type Incident =
  | { kind: Exclude<IncidentKind, 'backlog'>; target: Role }
  | { kind: 'backlog'; target: string };

/** What is wrong at the moment, as far as the roles' own work is concerned. */
export interface Conditions {
  /** The role whose persistence calls fail now and then. */
  failingRole?: string;
  /** The task list that has too few pollers. */
  starvedTaskList?: string;
}

const usual = { 'persistence-errors': 'history', restart: 'matching', fatal: 'worker' } as const;
const listNames = taskLists.map((list) => list.name);

/** Reads `restart history`, `backlog`, …: a kind and, if the usual one will not do, a target. Throws what to say. */
export function parseIncident(text: string): Incident {
  const [word, target] = text.trim().split(/\s+/);
  const kind = incidentKinds.find((one) => one === word);
  if (!kind) throw new Error(`no such incident: ${word || '(nothing)'}; use ${incidentKinds.join(', ')}`);
  if (kind === 'backlog') return { kind, target: oneOf(listNames, target ?? listNames[0], 'task list') };
  return { kind, target: oneOf(roles, target ?? usual[kind], 'role') };
}

function oneOf<T extends string>(allowed: readonly T[], word: string | undefined, what: string): T {
  const found = allowed.find((one) => one === word);
  if (!found) throw new Error(`no such ${what}: ${word}; use ${allowed.join(', ')}`);
  return found;
}

/** What goes wrong next, if nobody says so. */
export function randomIncident(random: Random): Incident {
  const kind = incidentKinds[random.integer(0, incidentKinds.length - 1)] ?? 'restart';
  const targets = kind === 'backlog' ? listNames : roles;
  return parseIncident(`${kind} ${targets[random.integer(0, targets.length - 1)]}`);
}
