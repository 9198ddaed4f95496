import fc from 'fast-check';

/** A text that is at every place of a configuration that holds a secret, and nowhere else. */
export const secret = 'PASSW0RD';

/** A configuration that has every block, and is valid except for the URLs with a user part. */
export const wholeConfig = {
  roles: ['frontend', 'history'],
  scope: 'all',
  metrics: {
    tags: { cluster: 'dc1' },
    pullmetrics: {
      listenAddress: '127.0.0.1:0',
      defaultHistogramBuckets: [0.1, 1, 10],
      auth: { basic: { username: 'scraper', password: secret } },
    },
  },
  services: {
    frontend: {
      logs: {
        paths: ['/var/log/svc/frontend*.log'],
        rules: [{ name: 'svc_slow_total', type: 'counter', match: { msg: 'slow' }, labels: { d: 'domain' } }],
      },
      health: { url: `http://user:${secret}@127.0.0.1:7933/health`, auth: { bearer: secret } },
      scrape: { url: 'http://127.0.0.1:8000/metrics', auth: { basic: { username: 'u', password: secret } } },
      statsd: { listen: '127.0.0.1:0', senders: ['10.0.0.0/8'] },
      vocabulary: { metrics: { a: 'svc_restarts' } },
    },
    history: {
      scrape: `https://user:${secret}@127.0.0.1:8001/metrics`,
      metrics: {
        hostedmetrics: {
          protocol: 'otlp',
          endpoint: `http://user:${secret}@127.0.0.1:4318/v1/metrics`,
          headers: { 'X-Api-Key': secret },
          auth: { bearer: secret },
        },
      },
    },
  },
  stores: [
    {
      name: 'main',
      kind: 'postgres',
      address: '127.0.0.1:5432',
      user: 'svc_agent',
      password: secret,
      databases: { persistence: 'svc' },
    },
  ],
  limits: { seriesPerMetric: 100, series: 1000, forbiddenTags: ['user'] },
  admin: { listenAddress: '127.0.0.1:0', auth: { bearer: secret } },
  log: { level: 'info', encoding: 'json' },
};

const odd = fc.oneof(
  fc.constant(`\${NOT_SET}`),
  fc.constantFrom<unknown>(null, true, 0, -1, 1e300, '', ' ', '[', '*', '~', '0x', 'a@b', '::'),
  fc.constantFrom<unknown>(
    [],
    {},
    [[]],
    [1, { toString: 1 }],
    { constructor: 1 },
    { valueOf: null, length: -1 },
  ),
  fc.string({ maxLength: 12 }),
  fc.double(),
);

type Change = { at: number; how: 'replace' | 'wrap' | 'list' | 'remove' | 'add' | 'double'; value: unknown };
const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(),
  how: fc.constantFrom('replace', 'wrap', 'list', 'remove', 'add', 'double'),
  value: odd,
});

/** Every map and list below a value, with each of its keys. */
function* placesIn(value: unknown): Generator<[holder: Record<string, unknown>, key: string]> {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    yield [value as Record<string, unknown>, key];
    yield* placesIn((value as Record<string, unknown>)[key]);
  }
}

const hasSecret = (value: unknown) => JSON.stringify(value ?? null).includes(secret);

/** Changes one place. A secret stays below a key that may hold secrets. */
function apply(config: object, { at, how, value: given }: Change): void {
  const value = structuredClone(given);
  const places = [...placesIn(config)];
  const [holder, key] = places[at % places.length] ?? [];
  if (!holder || key === undefined) return;
  const now = holder[key];
  if (how === 'replace') holder[key] = value;
  else if (how === 'wrap') holder[key] = { [typeof value === 'string' && value ? value : 'x']: now };
  else if (how === 'list') holder[key] = [now, value];
  else if (how === 'remove') delete holder[key];
  else if (how === 'add' && !Array.isArray(holder)) holder[`${key}x`] = hasSecret(now) ? value : now;
  else if (how === 'double' && Array.isArray(holder)) (holder as unknown[]).push(structuredClone(now));
}

/** Configurations with a few places changed, as the text of a file. */
export const mutatedConfig = fc.array(change, { minLength: 1, maxLength: 6 }).map((changes) => {
  const config = structuredClone(wholeConfig);
  for (const one of changes) apply(config, one);
  return JSON.stringify(config);
});
