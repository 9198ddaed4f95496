import * as z from 'zod';
import { endpoint } from '../object-store/endpoint.ts';
import { type ArchivalOptions, archivalStatuses, type DomainDefaults } from './options.ts';
import { archivalUri } from './uri.ts';

const provider = z.strictObject({
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

const uri = z.string().refine((text) => archivalUri.read(text) !== undefined, archivalUri.fault);

const defaults = z
  .strictObject({ status: z.enum(archivalStatuses), URI: uri.optional() })
  .transform(({ status, URI }) => ({ status, uri: URI }));

/** `domainDefaults` (spec, Archival configuration). */
export const domainDefaultsBlock = () =>
  z.strictObject({
    archival: z.strictObject({ history: defaults.optional(), visibility: defaults.optional() }).default({}),
  }) satisfies z.ZodType<DomainDefaults>;
