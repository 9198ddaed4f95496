import * as z from 'zod';
import { logLevels } from '../../core/reasons.ts';
import { interval, listenAddress, parsedAs, type TextFormat, webAddress } from '../../core/text-formats.ts';
import { archivalBlock, domainDefaultsBlock } from '../../probes/archival/block.ts';
import { backupBlock } from '../../probes/backups/block.ts';
import { isTimeZone } from '../../probes/backups/formats/wall-time.ts';
import { clusterGroupBlock } from '../../probes/clusters/block.ts';
import { domainsBlock } from '../../probes/domains/block.ts';
import { healthBlock } from '../../probes/health/block.ts';
import { storeBlock } from '../../probes/stores/store-block.ts';
import { hostedBlock, pullBlock, pushBlock } from '../../reporters/block.ts';
import { logsBlock } from '../../sources/logs/block.ts';
import { scrapeBlock } from '../../sources/scrape/block.ts';
import { statsdBlock } from '../../sources/statsd/block.ts';
import {
  clientAuthBlock,
  clientTlsBlock,
  listenerAuthBlock,
  listenerTlsBlock,
  secretBlock,
} from './access-blocks.ts';
import { recoveryBlock } from './recovery-block.ts';
import { defaultAdminAddress, scopes, weekdays } from './types.ts';

/** Keys that every log entry uses for something else. */
const takenKeys: ReadonlySet<string> = new Set(['ts', 'msg', 'logger']);

/** The schema of `log`: the agent's own log, in the spec's block (spec, Logging configuration). */
const logBlock = z
  .strictObject({
    level: z
      .enum(logLevels, 'unknown level; use debug, info, warn, error or fatal (lower case)')
      .default('info')
      .describe('Lowest level that is written.'),
    encoding: z
      .enum(['json', 'console'], 'unknown encoding; use json or console')
      .default('json')
      .describe('json: one object per line. console: readable columns.'),
    outputFile: z.string().min(1).optional().describe('Log file; its directory must exist and be writable.'),
    stdout: z.boolean().default(false).describe('Writes the log to stdout instead of stderr.'),
    levelKey: z
      .string()
      .min(1)
      .refine((key) => !takenKeys.has(key), 'a reserved key; use another name')
      .default('level')
      .describe('Field that holds the level.'),
  })
  .describe('The agent’s own log.');

const client = { tls: clientTlsBlock, auth: clientAuthBlock };
const listener = { tls: listenerTlsBlock, auth: listenerAuthBlock };
const address = () => z.string(listenAddress.fault).transform(parsedAs(listenAddress));

/** The format of a time of day; its value is in minutes. */
const timeOfDay: TextFormat<number> = {
  fault: 'not a time of day; use the form "02:30", in quotes',
  read(text) {
    const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
    return hours === undefined ? undefined : Number(hours) * 60 + Number(minutes);
  },
};

/** The schema of `maintenance`: when work is planned. */
const maintenanceBlock = z
  .strictObject({
    windows: z
      .array(
        z.strictObject({
          days: z.array(z.enum(weekdays)).min(1).describe('Weekdays on which it begins.'),
          start: z
            .string(timeOfDay.fault)
            .transform(parsedAs(timeOfDay))
            .describe('Time of day at which it begins, such as "02:30".'),
          duration: z
            .string(interval.fault)
            .transform(parsedAs(interval))
            .describe('How long it takes, at most 7d.'),
          timeZone: z
            .string()
            .default('UTC')
            .refine(isTimeZone, 'not a time zone; use an IANA name, such as Europe/Berlin')
            .describe('Time zone of start: the window begins by the wall clock there.'),
          reason: z.string().min(1).max(300).describe('What is done, as the status page shows it.'),
        }),
      )
      .default([])
      .describe('Weekly windows. During a window the verdict says so, and svc_maintenance is 1.'),
  })
  .describe('Planned work.');

/** Labels of the exposition formats and of the registry. A global tag cannot have these names. */
const takenTags: ReadonlySet<string> = new Set(['le', 'quantile', 'svc_service', 'overflow']);

const tagName = z
  .string()
  .min(1)
  .refine((name) => !takenTags.has(name) && !name.startsWith('__'), {
    error: 'a reserved tag; use another name',
  });

const metricsBlock = z
  .strictObject({
    tags: z
      .record(tagName, z.string())
      .default({})
      .describe('Global tags; cluster is added automatically if it is known.'),
    prefix: z.string().default('').describe('Prefix of every name: p makes it p_name.'),
    reportingInterval: z
      .string(interval.fault)
      .transform(parsedAs(interval))
      .prefault('1s')
      .describe('How often values are pushed. A pull reporter ignores it.'),
    pullmetrics: pullBlock(listener).optional(),
    pushmetrics: pushBlock().optional(),
    hostedmetrics: hostedBlock({ secret: secretBlock, ...client }).optional(),
  })
  .describe('Where metrics go: at most one reporter.');

const words = z.record(z.string().min(1), z.string().min(1));

const patterns = z
  .array(z.string().regex(/^[\w.*:-]+$/, 'not a metric name; use a name, * for any characters'))
  .min(1)
  .optional();

const vocabularyBlock = z
  .union([
    z
      .string()
      .regex(/^[\w.-]+$/, 'not the name of a vocabulary; use auto, svc, a shipped table’s name or a table'),
    z.strictObject({
      extends: z
        .string()
        .optional()
        .describe('A shipped table that this one adds to: cadence, temporal or svc.'),
      metrics: words.default({}).describe('Maps a name that the product sends to a name of the catalog.'),
      tags: words.default({}).describe('Maps a tag that the product sends to a label of the catalog.'),
      units: words
        .default({})
        .describe('Unit of a metric that is not in the catalog’s unit, such as milliseconds.'),
      drop: patterns.describe('Metrics that are left out, by either name; * stands for any characters.'),
      keep: patterns.describe('If set, all other metrics are left out.'),
      labels: z
        .strictObject({ drop: z.array(z.string().min(1)).default([]).describe('Labels that are removed.') })
        .optional()
        .describe('Labels of every metric.'),
    }),
  ])
  .describe(
    'auto, svc, the name of a shipped table, or a table that maps a product’s names to the catalog’s.',
  );

const serviceBlock = z.strictObject({
  logs: logsBlock().optional(),
  health: healthBlock(client).optional(),
  scrape: scrapeBlock(client).optional(),
  statsd: statsdBlock(listener).optional(),
  vocabulary: vocabularyBlock.default('auto'),
  metrics: metricsBlock.optional().describe('All series of this service are reported here instead.'),
});

const serviceName = z
  .string()
  .min(1)
  .refine((name) => name !== 'agent' && name !== 'unknown', 'a reserved name; use the role’s name');

const limitsBlock = z
  .strictObject({
    seriesPerMetric: z
      .int()
      .min(1)
      .max(10_000_000)
      .default(2000)
      .describe('Maximum number of label sets of one metric.'),
    series: z
      .int()
      .min(1)
      .max(10_000_000)
      .default(50_000)
      .describe(
        'Maximum number of label sets in total. A limit that the heap of the process cannot hold is lowered at start, with a warning.',
      ),
    forbiddenTags: z.array(z.string().min(1)).default([]).describe('Further tags that are dropped.'),
    allowValues: z
      .array(z.string().min(1))
      .default([])
      .describe('Tags whose values are never dropped or replaced.'),
  })
  .describe(
    'Limits of the series that are received. Series of the agent itself and of its probes do not count.',
  );

const linkTo = (what: string, example: string) => {
  const link = webAddress(['http', 'https'], example);
  return z.string(link.fault).transform(parsedAs(link)).optional().describe(`Address of ${what}.`);
};

const adminBlock = z
  .strictObject({
    listenAddress: address()
      .prefault(defaultAdminAddress)
      .describe('host:port of the status page and the API.'),
    health: address().optional().describe('host:port that serves /health and /ready only.'),
    allowedHosts: z
      .array(
        z.string().regex(/^[^\s/@]+$/, 'not a host; use a name or an address, such as agent.example.com'),
      )
      .optional()
      .describe('Further names that the Host header of a request may have, such as the name of a proxy.'),
    tls: listenerTlsBlock.optional(),
    auth: listenerAuthBlock.optional(),
    events: z
      .strictObject({ token: secretBlock.describe('Bearer token of POST /event.') })
      .optional()
      .describe('Takes announcements of deploys and maintenance.'),
    links: z
      .strictObject({
        grafana: linkTo('Grafana', 'https://grafana.example.com'),
        prometheus: linkTo('Prometheus', 'https://prometheus.example.com'),
        alertmanager: linkTo('Alertmanager', 'https://alertmanager.example.com'),
      })
      .optional()
      .describe('Addresses that the status page links to.'),
  })
  .describe('Status page and API; `admin: ~` turns them off.');

/** The schema of `agent.yaml` (docs/reference/configuration.md). */
export const agentBlock = z.strictObject({
  roles: z
    .array(serviceName)
    .optional()
    .describe('Roles on this host or in this pod; default: the keys of services.'),
  serviceConfig: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'The service’s own files; later files override earlier ones. A relative path starts in the directory where the agent is started.',
    ),
  scope: z.enum(scopes).default('host').describe('Which settings are read from serviceConfig.'),
  instance: z
    .string()
    .default('')
    .describe('Name of the agent, the value of the label instance. Default: host or pod name.'),
  stateDirectory: z
    .string()
    .default('')
    .describe(
      'Directory of positions, totals and queues. Default: $STATE_DIRECTORY, /var/lib/svc-agent if it is writable, or .svc-agent beside the configuration file.',
    ),
  stateFsync: z
    .boolean()
    .default(false)
    .describe('Syncs each commit to the disk, so that it survives a power loss.'),
  metrics: metricsBlock.prefault({}),
  services: z
    .record(serviceName, serviceBlock, {
      error: ({ code }) =>
        code === 'invalid_type'
          ? 'not a map; use a key for each role, such as frontend: {logs: {paths: […]}}'
          : undefined,
    })
    .default({})
    .describe('What the agent collects, by role. Other names are further services, with their own series.'),
  stores: z
    .array(storeBlock({ secret: secretBlock, tls: clientTlsBlock }))
    .default([])
    .describe('Databases of the service to probe.'),
  clusterGroupMetadata: clusterGroupBlock().optional(),
  archival: archivalBlock().optional(),
  domainDefaults: domainDefaultsBlock().optional(),
  domains: domainsBlock().optional(),
  recovery: recoveryBlock(),
  maintenance: maintenanceBlock.prefault({}),
  backups: z
    .array(backupBlock({ secret: secretBlock }))
    .default([])
    .describe('Backups to observe, one entry for each kind and store.'),
  limits: limitsBlock.prefault({}),
  admin: adminBlock.prefault({}),
  log: logBlock.prefault({}),
});

/** The output of `agentBlock`, with defaults filled in and durations in ms. */
export type Parsed = z.output<typeof agentBlock>;
export type ParsedMetrics = Parsed['metrics'];

type Schema = { [key: string]: unknown };

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The schema of a variable in the place of a value that is not a string. */
const variable: Schema = { type: 'string', pattern: '\\$\\{[A-Za-z_]\\w*(:[^{}]*)?\\}' };
const unquoted: ReadonlySet<unknown> = new Set(['integer', 'number', 'boolean']);

/**
 * The configuration as JSON Schema, draft 2020-12, for files as they are written: null means absent, and a number, boolean or
 * enum may come from a variable. The schema does not cover rules between parts; `check` does.
 */
export function configurationSchema(): Schema {
  const schema = z.toJSONSchema(agentBlock, { io: 'input', target: 'draft-2020-12' }) as Schema;
  return { ...asWritten(schema), title: 'svc-agent configuration (agent.yaml)' };
}

function asWritten(schema: Schema): Schema {
  const result: Schema = { ...schema };
  for (const key of ['anyOf', 'oneOf', 'allOf'] as const) {
    if (Array.isArray(schema[key])) result[key] = (schema[key] as Schema[]).map(asWritten);
  }
  if (isSchema(schema.items)) result.items = asWritten(schema.items);
  if (isSchema(schema.additionalProperties)) {
    result.additionalProperties = orNull(asWritten(schema.additionalProperties));
  }
  for (const key of ['properties', '$defs'] as const) {
    if (isSchema(schema[key]))
      result[key] = eachProperty(
        schema[key],
        key === 'properties' ? (schema.required as string[]) : undefined,
      );
  }
  return unquoted.has(schema.type) || (schema.enum !== undefined && schema.type === 'string')
    ? orVariable(result)
    : result;
}

function eachProperty(properties: Schema, required: readonly string[] | undefined): Schema {
  const entries = Object.entries(properties).map(([name, property]) => {
    const written = asWritten(property as Schema);
    return [name, required?.includes(name) ? written : orNull(written)];
  });
  return Object.fromEntries(entries);
}

/** A schema with alternatives. Description and default stay at the top level, where editors read them. */
function alternatives(schema: Schema, ...others: Schema[]): Schema {
  const { description, default: usual, ...rest } = schema;
  const known =
    Array.isArray(rest.anyOf) && Object.keys(rest).length === 1 ? (rest.anyOf as Schema[]) : [rest];
  return {
    ...(description === undefined ? {} : { description }),
    ...(usual === undefined ? {} : { default: usual }),
    anyOf: [...known, ...others],
  };
}

const orVariable = (schema: Schema): Schema => alternatives(schema, variable);
const orNull = (schema: Schema): Schema => alternatives(schema, { type: 'null' });
