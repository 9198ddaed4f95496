import * as z from 'zod';
import { objectStoreAddress } from '../../core/text-formats.ts';
import {
  type ArchivalOptions,
  type ArchivalProvider,
  archivalStatuses,
  archivalUri,
  type DomainDefaults,
} from './archives.ts';

/** The schema of providers, by name. The agent reads nothing of a provider that it does not know. */
const providerBlock = () =>
  z.looseObject({
    objectstore: z
      .strictObject({
        region: z
          .string()
          .regex(/^[\w.-]+$/, 'not a region; use letters, digits, -, _ and .')
          .optional()
          .describe('Region of the bucket.'),
        endpoint: z
          .string()
          .refine((text) => objectStoreAddress.read(text) !== undefined, objectStoreAddress.fault)
          .optional()
          .describe('URL of the object store. Default: the URL of the region.'),
      })
      .optional()
      .describe('Archives with the scheme s3.'),
    filestore: z
      .strictObject({
        fileMode: z.string().optional().describe('Mode of new files; the service uses it.'),
        dirMode: z.string().optional().describe('Mode of new directories; the service uses it.'),
      })
      .optional()
      .describe('Archives with the scheme file.'),
  });

const knownKinds: ReadonlySet<string> = new Set(['objectstore', 'filestore']);

const sectionBlock = () =>
  z
    .strictObject({
      status: z.enum(archivalStatuses).describe('Whether the service archives.'),
      enableRead: z.boolean().default(false).describe('Whether the service reads from the archive.'),
      writeCheck: z
        .boolean()
        .optional()
        .describe(
          'Whether each check writes, reads and deletes a small object. Default: true for file, else false.',
        ),
      readCheck: z
        .boolean()
        .optional()
        .describe(
          'With enableRead: whether each check reads the newest object. Default: true for file, else false.',
        ),
      provider: providerBlock().default({}).describe('Settings by kind of archive.'),
    })
    .transform(({ provider: kinds, ...rest }) => ({
      ...rest,
      providers: Object.entries(kinds).map(([kind, fields]) => ({
        kind,
        ...(knownKinds.has(kind) ? (fields as Omit<ArchivalProvider, 'kind'>) : {}),
      })),
    }));

/** The schema of `archival` (spec, Archival configuration). */
export const archivalBlock = () =>
  z
    .strictObject({
      history: sectionBlock().optional().describe('Archive of workflow histories.'),
      visibility: sectionBlock().optional().describe('Archive of visibility records.'),
    })
    .describe('Archives, as in the service’s own file.') satisfies z.ZodType<ArchivalOptions>;

const defaultsBlock = () =>
  z
    .strictObject({
      status: z.enum(archivalStatuses).describe('Whether new domains archive.'),
      URI: z
        .string()
        .refine((text) => archivalUri.read(text) !== undefined, archivalUri.fault)
        .optional()
        .describe('Where new domains archive to.'),
    })
    .transform(({ status, URI }) => ({ status, uri: URI }));

/** The schema of `domainDefaults` (spec, Archival configuration). */
export const domainDefaultsBlock = () =>
  z
    .strictObject({
      archival: z
        .strictObject({
          history: defaultsBlock().optional().describe('Default for workflow histories.'),
          visibility: defaultsBlock().optional().describe('Default for visibility records.'),
        })
        .default({})
        .describe('Archival of new domains.'),
    })
    .describe('Defaults of new domains, as in the service’s own file.') satisfies z.ZodType<DomainDefaults>;
