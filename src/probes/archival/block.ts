import * as z from 'zod';
import { endpoint } from '../object-store/endpoint.ts';
import { type ArchivalOptions, archivalStatuses, archivalUri, type DomainDefaults } from './archives.ts';

const providerBlock = () =>
  z.strictObject({
    objectstore: z
      .strictObject({
        region: z
          .string()
          .regex(/^[\w.-]+$/, 'not a region; use letters, digits, -, _ and .')
          .optional(),
        endpoint: z
          .string()
          .refine((text) => endpoint.read(text) !== undefined, endpoint.fault)
          .optional(),
      })
      .optional(),
    filestore: z.strictObject({ fileMode: z.string().optional(), dirMode: z.string().optional() }).optional(),
  });

const sectionBlock = () =>
  z
    .strictObject({
      status: z.enum(archivalStatuses),
      enableRead: z.boolean().default(false),
      writeCheck: z
        .boolean()
        .optional()
        .describe(
          'Whether each check writes, reads and deletes a small object. Default: true for file, else false.',
        ),
      provider: providerBlock().default({}),
    })
    .transform(({ provider: kinds, ...rest }) => ({
      ...rest,
      providers: Object.entries(kinds).map(([kind, fields]) => ({
        kind,
        ...('region' in fields ? { region: fields.region } : {}),
        ...('endpoint' in fields ? { endpoint: fields.endpoint } : {}),
      })),
    }));

/** `archival` (spec, Archival configuration). */
export const archivalBlock = () =>
  z.strictObject({
    history: sectionBlock().optional(),
    visibility: sectionBlock().optional(),
  }) satisfies z.ZodType<ArchivalOptions>;

const defaultsBlock = () =>
  z
    .strictObject({
      status: z.enum(archivalStatuses),
      URI: z
        .string()
        .refine((text) => archivalUri.read(text) !== undefined, archivalUri.fault)
        .optional(),
    })
    .transform(({ status, URI }) => ({ status, uri: URI }));

/** `domainDefaults` (spec, Archival configuration). */
export const domainDefaultsBlock = () =>
  z.strictObject({
    archival: z
      .strictObject({ history: defaultsBlock().optional(), visibility: defaultsBlock().optional() })
      .default({}),
  }) satisfies z.ZodType<DomainDefaults>;
