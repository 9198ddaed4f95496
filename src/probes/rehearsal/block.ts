import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import * as z from 'zod';
import { parsedAs, span } from '../../core/text-formats.ts';
import { type StoreRole, storeRoles } from '../stores/store-options.ts';

const time = () => z.string(span.fault).transform(parsedAs(span));

const statement = () => z.string().min(1);
const ofRole = () =>
  statement()
    .optional()
    .describe(
      'The statement for the databases with this role. Default: the time of the last commit in the log.',
    );

type Statements = Readonly<Partial<Record<StoreRole, string>>>;

const statementsOf = (given: string | Statements | undefined): Statements =>
  typeof given === 'string' ? Object.fromEntries(storeRoles.map((role) => [role, given])) : (given ?? {});

/** The schema of `recovery.rehearsal`: the newest verified backup is restored into a throwaway server on this host. */
export const rehearsalBlock = () =>
  z
    .strictObject({
      schedule: z
        .strictObject({ every: time().prefault('7d').describe('Time between two rehearsals of a database.') })
        .prefault({})
        .describe('How often a recovery is rehearsed.'),
      directory: z
        .string()
        .min(1)
        .default(tmpdir)
        .describe(
          'Where the throwaway server keeps its files. Default: the system’s directory for temporary files.',
        ),
      maxBytes: z
        .int()
        .min(1 << 20)
        .default(20 * 2 ** 30)
        .describe('How much disk space the throwaway server may take.'),
      timeout: time().prefault('2h').describe('How long one rehearsal may take.'),
      stores: z
        .array(z.string().min(1))
        .optional()
        .describe('Stores to rehearse. Default: every store with backups.'),
      databases: z
        .array(z.enum(storeRoles))
        .optional()
        .describe('Databases to rehearse. Default: every database with backups.'),
      newestRow: z
        .union([statement(), z.strictObject({ persistence: ofRole(), visibility: ofRole() })])
        .optional()
        .describe(
          'Statement that returns the time of the newest row of a restored database: one for all databases, or a map with one for each role of a database. Default: the time of the last commit in the log.',
        ),
    })
    .optional()
    .transform(
      (given): RehearsalOptions | undefined =>
        given && {
          // The server and its tools run in other directories, where a relative path would mean another directory.
          directory: resolve(given.directory),
          maxBytes: given.maxBytes,
          stores: given.stores,
          databases: given.databases,
          newestRow: statementsOf(given.newestRow),
          everyMs: given.schedule.every,
          timeoutMs: given.timeout,
        },
    )
    .describe(
      'Rehearses the recovery on this host: restores the newest verified backup into a throwaway server.',
    );

export interface RehearsalOptions {
  everyMs: number;
  directory: string;
  maxBytes: number;
  timeoutMs: number;
  stores?: readonly string[];
  databases?: readonly string[];
  /** The statements that return the time of the newest row, by the roles of the databases. */
  newestRow?: Statements;
}
