import { writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { freePort } from '../ports.ts';
import { aggregator } from '../push.ts';
import { serving } from '../serving.ts';
import { until } from '../until.ts';
import { mainFile, start } from './process.ts';

// The example of docs and CONTRIBUTING, unchanged: the agent's spans leave through OpenTelemetry's own exporter, and the agent's
// requests carry them.

const example = fileURLToPath(new URL('../../examples/tracing/tracing.mjs', import.meta.url));

interface Value {
  stringValue?: string;
  intValue?: number;
  boolValue?: boolean;
}

/** A span in the form of OTLP/JSON. */
interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  status: { code?: number; message?: string };
  attributes: readonly { key: string; value: Value }[];
}

interface Asked {
  path: string;
  headers: IncomingHttpHeaders;
}

/** A server that records its requests, and the spans that it receives. */
async function receiver() {
  const asked: Asked[] = [];
  const spans: Span[] = [];
  const port = await serving((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      if (path === '/v1/traces') {
        const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as {
          resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
        };
        spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
      } else asked.push({ path, headers: request.headers });
      response.writeHead(path.startsWith('/refuses') ? 400 : 200, { 'content-type': 'application/json' });
      response.end(path === '/health' ? '{"ok":true,"msg":"OK"}' : '{}');
    });
  });
  return { origin: `http://127.0.0.1:${port}`, asked, spans };
}

const attributesOf = ({ attributes }: Span) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

test('gather, commit, reload, each probe and each delivery are spans that OpenTelemetry exports', async () => {
  const { origin, asked, spans } = await receiver();
  const apart = newFolder();
  const file = join(apart, 'agent.yaml');
  const closed = await freePort();
  const receiving = await aggregator();
  const backup = (bucket: string) =>
    `  - {name: ${bucket}, store: main, database: persistence, type: full, interval: 500ms, source: {objectStore: {endpoint: "${origin}", region: us-east-1, bucket: ${bucket}, pattern: '.*'}}}`;
  const configuration = (level: string) => `
stateDirectory: ${apart}/state
admin: ~
log: {level: ${level}}
metrics:
  reportingInterval: 200ms
  hostedmetrics: {protocol: otlp, endpoint: "${origin}/v1/metrics"}
services:
  frontend:
    health: {url: "${origin}/health", interval: 2s, timeout: 2s}
    metrics: {reportingInterval: 200ms, pushmetrics: {hostPort: "127.0.0.1:${receiving.port}"}}
  history:
    health: {url: "http://127.0.0.1:${closed}/health", interval: 2s, timeout: 2s}
    metrics: {reportingInterval: 200ms, pushmetrics: {hostPort: "nowhere.invalid:8125"}}
stores: [{name: main, kind: postgres, address: "127.0.0.1:${closed}"}]
backups:
${backup('archive')}
${backup('refuses')}
`;
  writeFileSync(file, configuration('info'));
  const agent = start(process.execPath, ['--import', example, mainFile, 'run', '-c', file], {
    OTEL_EXPORTER_OTLP_ENDPOINT: origin,
    OTEL_SERVICE_NAME: 'svc-agent',
    OTEL_BSP_SCHEDULE_DELAY: '200',
    AWS_ACCESS_KEY_ID: 'key',
    AWS_SECRET_ACCESS_KEY: 'secret',
  });
  onTestFinished(() => void agent.end('SIGKILL'));

  const named = (name: string) => spans.filter((span) => span.name === name);
  const probeOf = (role: string) =>
    named('probe').find((span) => attributesOf(span)['svc.probe.name'] === `health/${role}`);
  await until(
    'a gather, a delivery and both probes are exported',
    async () =>
      named('gather').length > 0 && named('deliver').length > 0 && probeOf('frontend') && probeOf('history'),
  );
  const deliveries = (has: (values: ReturnType<typeof attributesOf>) => boolean) =>
    named('deliver').filter((span) => has(attributesOf(span)));
  const pushed = () => deliveries((values) => !('http.response.status_code' in values));
  const asks = (status: number) =>
    named('object_store').filter((span) => attributesOf(span)['http.response.status_code'] === status);
  await until('flushes and requests to both object stores are exported', async () => {
    const isUnresolved = pushed().some(({ status }) => status.code === 2);
    const isSent = pushed().some(({ status }) => status.code !== 2);
    return isUnresolved && isSent && asks(200).length > 0 && asks(400).length > 0;
  });
  writeFileSync(file, 'services: [');
  agent.child.kill('SIGHUP');
  await until('a refused reload is exported', async () =>
    named('reload').some(({ status }) => status.code === 2),
  );
  writeFileSync(file, configuration('warn'));
  agent.child.kill('SIGHUP');
  await until('a reload is exported', async () => named('reload').some(({ status }) => status.code !== 2));
  expect(await agent.end('SIGTERM')).toBe(0);

  // Parents.
  const gathers = new Set(named('gather').map(({ spanId }) => spanId));
  const within = named('commit').filter(({ parentSpanId }) => parentSpanId && gathers.has(parentSpanId));
  expect(within.length).toBeGreaterThan(0);
  // Attributes and faults.
  expect(attributesOf(named('gather').at(-1)!)).toMatchObject({ 'svc.families': expect.any(Number) });
  expect(attributesOf(probeOf('frontend')!)).toEqual({
    'svc.probe.name': 'health/frontend',
    'svc.probe.kind': 'health',
    'svc.probe.target': `${origin}/health`,
    svc_service: 'frontend',
  });
  expect(probeOf('frontend')!.status.code).not.toBe(2);
  expect(probeOf('history')!.status).toMatchObject({
    code: 2,
    message: expect.stringContaining('ECONNREFUSED'),
  });
  expect(attributesOf(probeOf('history')!)['svc.probe.reason']).toBe('refused');
  expect(attributesOf(deliveries((values) => 'http.response.status_code' in values)[0]!)).toMatchObject({
    'http.response.status_code': 200,
    'svc.batch.points': expect.any(Number),
  });
  const unresolved = pushed().find(({ status }) => status.code === 2)!;
  expect(attributesOf(unresolved)).toEqual({
    'svc.batch.points': expect.any(Number),
    'svc.batch.bytes': expect.any(Number),
    'svc.failure.reason': 'resolve',
  });
  expect(unresolved.status.message).toContain('nowhere.invalid');
  expect(attributesOf(asks(200)[0]!)).toEqual({
    'http.request.method': 'GET',
    'http.response.status_code': 200,
  });
  expect(asks(200)[0]!.status.code).not.toBe(2);
  expect(asks(400)[0]!.status.code).toBe(2);
  const probes = new Set(named('probe').map(({ spanId }) => spanId));
  expect([...asks(200), ...asks(400)].every(({ parentSpanId }) => probes.has(parentSpanId ?? ''))).toBe(true);
  // A request belongs to the span that sent it.
  const carried = (path: string, name: string) => {
    const parents = new Set(named(name).map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`));
    const headers = asked
      .filter((one) => one.path.startsWith(path))
      .map(({ headers }) => headers.traceparent);
    expect(headers.length).toBeGreaterThan(0);
    return headers.filter((text) => parents.has(String(text))).length;
  };
  expect(carried('/health', 'probe')).toBeGreaterThan(0);
  expect(carried('/v1/metrics', 'deliver')).toBeGreaterThan(0);
  expect(carried('/archive', 'object_store')).toBeGreaterThan(0);
  // The signature does not cover the header, so that a proxy may replace it.
  expect(asked.find(({ path }) => path.startsWith('/archive'))!.headers.authorization).not.toContain(
    'traceparent',
  );
  expect(carried('/refuses', 'object_store')).toBeGreaterThan(0);
});

test('without an SDK nothing is sent along', async () => {
  const { origin, asked, spans } = await receiver();
  const apart = newFolder();
  const file = join(apart, 'agent.yaml');
  writeFileSync(
    file,
    `stateDirectory: ${apart}/state\nadmin: ~\nservices: {frontend: {health: {url: "${origin}/health", interval: 2s, timeout: 2s}}}\n`,
  );
  const agent = start(process.execPath, [mainFile, 'run', '-c', file]);
  onTestFinished(() => void agent.end('SIGKILL'));
  await until('the role was asked', async () => asked.length > 0);
  expect(await agent.end('SIGTERM')).toBe(0);
  expect(asked[0]!.headers.traceparent).toBeUndefined();
  expect(spans).toEqual([]);
});
