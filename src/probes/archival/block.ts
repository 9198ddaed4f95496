import * as z from 'zod';
import { type ArchivalOptions, archivalStatuses, type DomainDefaults } from './options.ts';

const provider = z.strictObject({
  objectstore: z
    .strictObject({ region: z.string().min(1).optional(), endpoint: z.string().min(1).optional() })
    .optional(),
  filestore: z.strictObject({ fileMode: z.string().optional(), dirMode: z.string().optional() }).optional(),
});

const section = z
  .strictObject({
    status: z.enum(archivalStatuses),
    enableRead: z.boolean().default(false),
    provider: provider.default({}),
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
    history: section.optional(),
    visibility: section.optional(),
  }) satisfies z.ZodType<ArchivalOptions>;

const uri = z
  .string()
  .regex(
    /^(?:file:\/\/\/\S+|(?!file:)[a-z][a-z0-9+.-]*:\/\/[^\s/]+(?:\/\S*)?)$/,
    'not an archival URI; use <scheme>://<bucket>/<path>/ or file:///<directory>/',
  );

const defaults = z
  .strictObject({ status: z.enum(archivalStatuses), URI: uri.optional() })
  .transform(({ status, URI }) => ({ status, uri: URI }));

/** `domainDefaults` (spec, Archival configuration). */
export const domainDefaultsBlock = () =>
  z.strictObject({
    archival: z.strictObject({ history: defaults.optional(), visibility: defaults.optional() }).default({}),
  }) satisfies z.ZodType<DomainDefaults>;
