import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText } from '../../core/errors.ts';
import type { RehearsalPhase } from '../../core/reasons.ts';
import { escapedText, sqlText } from '../stores/sql-text.ts';
import { isAtLeast } from '../stores/store-finding.ts';
import {
  CannotLook,
  type Phases,
  type RehearsalAnswer,
  type RehearsalRequest,
  type Restored,
} from './rehearsal.ts';
import { openSandbox, type Sandbox, sizeOf } from './sandbox.ts';

type Rehearse = (request: RehearsalRequest, sandbox: Sandbox, phases: Phases) => Promise<Restored>;

/** The rehearsals by kind of store, and the user as which each server runs. */
const kinds: Readonly<
  Record<RehearsalRequest['kind'], { user: string; load(): Promise<Rehearse>; quoted(text: string): string }>
> = {
  postgres: {
    user: 'postgres',
    load: async () => (await import('./postgres-rehearsal.ts')).rehearsePostgres,
    quoted: sqlText,
  },
  mysql: {
    user: 'mysql',
    load: async () => (await import('./mariadb-rehearsal.ts')).rehearseMariadb,
    quoted: escapedText,
  },
};

/** The tables of the service's schema that have one row for each workflow. */
const workflowTables = { persistence: 'executions', visibility: 'executions_visibility' } as const;
const usualSchemaQuery = 'SELECT curr_version FROM schema_version WHERE db_name = {database}';

/** Restores the backup, examines the restored data, and removes it. Never rejects. */
export async function rehearse(
  request: RehearsalRequest,
  onPhase: (phase: RehearsalPhase) => void,
  signal: AbortSignal,
): Promise<RehearsalAnswer> {
  const phasesMs: RehearsalAnswer['phasesMs'] = {};
  const measure: Phases['measure'] = async (phase, work) => {
    onPhase(phase);
    const beganMs = performance.now();
    try {
      return await work();
    } finally {
      phasesMs[phase] = Math.round(performance.now() - beganMs);
    }
  };
  const { user, load } = kinds[request.kind];
  let sandbox: Sandbox | undefined;
  let found: Partial<RehearsalAnswer> = {};
  let fault: { result: 'failed' | 'unknown'; msg: string } | undefined;
  try {
    sandbox = openSandbox({ ...request, user, signal });
    const restored = await (await load())(request, sandbox, { measure });
    const { path } = sandbox;
    found = await measure('check', () => whatIsThere(request, restored));
    found.bytes = await sizeOf(path);
    // Only the tool knows the size of a backup that it manages.
    if (request.restore === undefined) found.backupBytes = await sizeOfBackup(request.backup);
  } catch (thrown) {
    // A program that was ended by the sandbox fails, too.
    const why = sandbox?.signal.aborted ? sandbox.signal.reason : thrown;
    fault = { result: why instanceof CannotLook ? 'unknown' : 'failed', msg: errorText(why) };
  }
  if (sandbox) await measure('remove', sandbox.remove);
  return { result: 'ok', msg: '', ...found, ...fault, phasesMs };
}

/** The size of a backup in the way in which the probe of the backup counts it: the sum of the sizes of its files. */
async function sizeOfBackup(path: string): Promise<number> {
  const found = await stat(path);
  if (!found.isDirectory()) return found.size;
  const entries = await readdir(path, { withFileTypes: true, recursive: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(async ({ name, parentPath }) => (await stat(join(parentPath, name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** Examines the restored data. Throws an error that says what is missing. */
async function whatIsThere(
  { kind, database, role, schemaQuery, schemaVersion: wanted, newestRow }: RehearsalRequest,
  { ask, newestMs }: Restored,
): Promise<Partial<RehearsalAnswer>> {
  const { quoted } = kinds[kind];
  const sql = (schemaQuery ?? usualSchemaQuery).replaceAll('{database}', () => quoted(database));
  const schemaVersion = await ask(sql).catch((thrown: unknown) => {
    if (wanted !== undefined || schemaQuery !== undefined) throw thrown;
    return '';
  });
  if (wanted !== undefined && isAtLeast(schemaVersion, wanted) !== true)
    throw new Error(
      `the schema has ${schemaVersion === '' ? 'no version' : `version ${schemaVersion}`}, expected ${wanted} or newer`,
    );
  const workflows = Number(await ask(`SELECT count(*) FROM ${workflowTables[role]}`));
  const asked = newestRow === undefined ? undefined : await ask(newestRow).catch(notAsked(database));
  const askedMs = asked === undefined || asked === '' ? undefined : timeOf(asked);
  return {
    workflows,
    ...(schemaVersion === '' ? {} : { schemaVersion }),
    ...newest([newestMs, askedMs]),
  };
}

/** A statement of the configuration that fails says nothing about the backup, which was restored. */
const notAsked = (database: string) => (thrown: unknown) => {
  throw new CannotLook(
    `the backup was restored, but recovery.rehearsal.newestRow fails in ${database}: ${errorText(thrown)}`,
  );
};

const newest = (times: readonly (number | undefined)[]) => {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? {} : { newestRowMs: Math.max(...known) };
};

/** A time as the server prints it. Without a zone it is UTC, because the throwaway server runs in UTC. */
function timeOf(text: string): number {
  const isNumber = /^\d+(?:\.\d+)?$/.test(text);
  const hasZone = /(?:Z|[+-]\d\d(?::?\d\d)?)$/.test(text);
  const ms = isNumber
    ? Number(text) * 1000
    : Date.parse(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00') + (hasZone ? '' : 'Z'));
  if (!Number.isFinite(ms))
    throw new CannotLook(`recovery.rehearsal.newestRow gave ${text.slice(0, 50)}, which is not a time`);
  return ms;
}
