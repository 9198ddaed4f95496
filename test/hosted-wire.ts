import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';
import snappy from 'snappyjs';

/** Decodes the bodies of requests with protobufjs, snappyjs and zlib, which share nothing with the encoders. */

const load = (name: string) =>
  protobuf.loadSync(fileURLToPath(new URL(`./fixtures/proto/${name}.proto`, import.meta.url)));
const rw1 = load('remote-write-1').lookupType('prometheus.WriteRequest');
const rw2 = load('remote-write-2').lookupType('io.prometheus.write.v2.Request');
const otlpRoot = load('otlp-metrics');
const otlp = otlpRoot.lookupType('otlp.ExportMetricsServiceRequest');
const otlpResponse = otlpRoot.lookupType('otlp.ExportMetricsServiceResponse');

export interface WireSample {
  labels: Record<string, string>;
  value: number | 'stale';
  timeMs: number;
  startMs?: number;
  type?: number;
  help?: string;
}

function numberOf(bits: string): number | 'stale' {
  const raw = BigInt(bits);
  if (raw === 0x7ff0000000000002n) return 'stale';
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(raw);
  return bytes.readDoubleLE(0);
}

const decode = <T>(type: protobuf.Type, bytes: Uint8Array): T =>
  type.toObject(type.decode(bytes), { longs: String, arrays: true }) as T;
const unsnap = (body: Buffer): Buffer => Buffer.from(snappy.uncompress(body));

function labelled(pairs: readonly (readonly [string, string])[]): Record<string, string> {
  const names = pairs.map(([name]) => name);
  if (new Set(names).size !== names.length) throw new Error(`a label is there twice: ${names}`);
  if (pairs.some(([name, value]) => name === '' || value === '')) throw new Error('an empty label');
  const inOrder = [...names].sort((a, b) => (a < b ? -1 : 1));
  if (names.join() !== inOrder.join()) throw new Error(`labels are not sorted: ${names}`);
  return Object.fromEntries(pairs);
}

interface Sample {
  value?: string;
  timestamp: string;
  startTimestamp?: string;
}

export function readRw1(body: Buffer): WireSample[] {
  type Series = { labels: { name: string; value: string }[]; samples: Sample[] };
  const { timeseries } = decode<{ timeseries: Series[] }>(rw1, unsnap(body));
  return timeseries.flatMap(({ labels, samples }) =>
    samples.map(({ value = '0', timestamp }) => ({
      labels: labelled(labels.map((label) => [label.name, label.value])),
      value: numberOf(value),
      timeMs: Number(timestamp),
    })),
  );
}

export function readRw2(body: Buffer): WireSample[] {
  type Metadata = { type?: number; helpRef?: number };
  type Series = { labelsRefs: number[]; samples: Sample[]; metadata?: Metadata };
  const { symbols, timeseries } = decode<{ symbols: string[]; timeseries: Series[] }>(rw2, unsnap(body));
  if (symbols[0] !== '') throw new Error('symbols do not begin with the empty one');
  if (new Set(symbols).size !== symbols.length) throw new Error('a symbol is there twice');
  return timeseries.flatMap(({ labelsRefs, samples, metadata }) => {
    const texts = labelsRefs.map((ref) => symbols[ref]!);
    const pairs = texts.flatMap((text, i) => (i % 2 === 0 ? [[text, texts[i + 1]!] as const] : []));
    return samples.map(({ value = '0', timestamp, startTimestamp }) => ({
      labels: labelled(pairs),
      value: numberOf(value),
      timeMs: Number(timestamp),
      ...(startTimestamp === undefined ? {} : { startMs: Number(startTimestamp) }),
      ...(metadata?.type === undefined ? {} : { type: metadata.type }),
      ...(metadata?.helpRef === undefined ? {} : { help: symbols[metadata.helpRef]! }),
    }));
  });
}

/** A sample as `name{label="value",…}`, with `job` and `instance` among the labels. */
export function nameOf({ labels }: WireSample): string {
  const { __name__: name, ...rest } = labels;
  return `${name}${JSON.stringify(Object.entries(rest))}`;
}

export interface WirePoint {
  attributes: { key: string; value: { stringValue: string } }[];
  startTimeUnixNano?: string;
  timeUnixNano: string;
  asDouble?: number;
  flags?: number;
  count?: string;
  sum?: number;
  bucketCounts?: string[];
  explicitBounds?: number[];
  quantileValues?: { quantile?: number; value?: number }[];
}

interface WireMetric {
  name: string;
  description?: string;
  unit?: string;
  gauge?: { dataPoints: WirePoint[] };
  sum?: { dataPoints: WirePoint[]; aggregationTemporality: number; isMonotonic: boolean };
  histogram?: { dataPoints: WirePoint[]; aggregationTemporality: number };
  summary?: { dataPoints: WirePoint[] };
}

export interface WireResource {
  resource: { attributes: { key: string; value: { stringValue: string } }[] };
  scopeMetrics: { scope: { name: string; version: string }; metrics: WireMetric[] }[];
}

export function readOtlp(body: Buffer): WireResource[] {
  return decode<{ resourceMetrics: WireResource[] }>(otlp, gunzipSync(body)).resourceMetrics;
}

export const metricsOf = (resources: readonly WireResource[]): WireMetric[] =>
  resources.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));

export const pointsOf = ({ gauge, sum, histogram, summary }: WireMetric): WirePoint[] =>
  (gauge ?? sum ?? histogram ?? summary)!.dataPoints;

/** An `ExportMetricsServiceResponse` that says that this number of points was rejected. */
export const partialSuccess = (rejectedDataPoints: number, errorMessage = 'out of order'): Buffer =>
  Buffer.from(otlpResponse.encode({ partialSuccess: { rejectedDataPoints, errorMessage } }).finish());
