import * as z from 'zod';
import type { ClientTls, Secret } from '../../core/access.ts';
import { type StoreCheck, storeChecks } from '../../core/check-severity.ts';
import { dialAddress, parsedAs, placeholders } from '../../core/text-formats.ts';
import { timedBlock } from '../timing-block.ts';
import { isCheckOf } from './store-checks.ts';
import { type StoreOptions, schemaPlaceholders, storeKinds } from './store-options.ts';

const storeAddress = dialAddress('10.0.0.5:5432');
const version = z.string().regex(/^\d+(?:\.\d+)*$/, 'not a version; use numbers in quotes, such as "0.8"');
const database = z.string().min(1);

const queryPlaces = placeholders(['database']);
const commandPlaces = placeholders(schemaPlaceholders);

const schemaBlock = z
  .strictObject({
    persistence: version.optional().describe('Minimum version of the persistence schema.'),
    visibility: version.optional().describe('Minimum version of the visibility schema.'),
    query: z
      .string()
      .min(1)
      .refine(queryPlaces.holds, queryPlaces.fault)
      .optional()
      .describe(
        'Statement that returns the version in its first column; {database} stands for the quoted name of the database or keyspace.',
      ),
    command: z
      .array(z.string().refine(commandPlaces.holds, commandPlaces.fault))
      .min(1)
      .optional()
      .describe(
        'Program and arguments that print the version, without a shell; {endpoint}, {database} and {keyspace} are filled in.',
      ),
  })
  .refine(({ query, command }) => query === undefined || command === undefined, {
    error: 'both query and command; keep one of them',
  })
  .default({})
  .describe('Minimum versions of the schemas, and how to determine them.');

const acceptBlock = z
  .strictObject(
    Object.fromEntries(
      storeChecks.map((check) => [
        check,
        z
          .string('not text; say why the store may fail this check')
          .trim()
          .min(1, 'no reason; say why the store may fail this check')
          .optional()
          .describe('Why the store may fail this check.'),
      ]),
    ) as Record<StoreCheck, z.ZodOptional<z.ZodString>>,
  )
  .default({})
  .describe(
    'Checks whose failure is accepted, each with the reason. /probes shows them; they have no series and cause no alert.',
  );

/** The schema of one entry of `stores` (docs/reference/configuration.md). */
export const storeBlock = (access: { secret: z.ZodType<Secret>; tls: z.ZodType<ClientTls> }) =>
  timedBlock(
    {
      name: z.string().min(1).describe('Name of the store, the value of the label store.'),
      kind: z
        .enum(storeKinds, {
          error: 'unknown kind; use widecolumn (Cassandra), mysql (MySQL, MariaDB) or postgres (PostgreSQL)',
        })
        .describe('Cassandra or compatible, MySQL or MariaDB, or PostgreSQL.'),
      address: z
        .string(storeAddress.fault)
        .transform(parsedAs(storeAddress))
        .describe('host:port of the server.'),
      user: z
        .string()
        .min(1)
        .optional()
        .describe('User that the checks log in as. Default: svc_agent, for PostgreSQL and MySQL.'),
      password: access.secret.optional(),
      tls: access.tls.optional(),
      credentials: z
        .enum(['own', 'service'])
        .default('own')
        .describe('service: takes user and password from the service’s files.'),
      databases: z
        .strictObject({
          persistence: database.optional().describe('Name of the persistence database or keyspace.'),
          visibility: database.optional().describe('Name of the visibility database or keyspace.'),
        })
        .default({})
        .describe('Databases or keyspaces to check.'),
      schema: schemaBlock,
      accept: acceptBlock,
    },
    { interval: '30s', timeoutMs: 10_000 },
  ).superRefine(({ kind, accept }: StoreOptions, { addIssue }) => {
    for (const check of Object.keys(accept) as StoreCheck[])
      if (!isCheckOf(check, kind))
        addIssue({
          code: 'custom',
          path: ['accept', check],
          message: `not a check of kind ${kind}; use ${storeChecks.filter((each) => isCheckOf(each, kind)).join(', ')}`,
        });
  });
