import { createSeriesSlice } from '../../../core/slices.ts';
import {
  type Batch,
  type BatchFormat,
  type DeliveryVerdict,
  type Origin,
  type Protocol,
  type ReceiverAnswer,
  type Report,
  type RequestLimits,
  verdictOfFailure,
  verdictOfPage,
} from '../protocol.ts';
import { packSnappy, unpackSnappy } from '../wire/snappy.ts';
import {
  createMessage,
  createSampler,
  type MessageBuilder,
  type RemoteSample,
  samplesOf,
} from './message.ts';

const writtenHeader = 'x-prometheus-remote-write-samples-written';

const headersOf = {
  rw2: {
    'content-type': 'application/x-protobuf;proto=io.prometheus.write.v2.Request',
    'x-prometheus-remote-write-version': '2.0.0',
  },
  rw1: { 'content-type': 'application/x-protobuf', 'x-prometheus-remote-write-version': '0.1.0' },
} as const;

const batchOf = (message: MessageBuilder, timeMs: number): Batch => {
  const { format, points } = message;
  return { format, points, timeMs, body: packSnappy(message.take()) };
};

function encodeSamples(batch: Batch, format: BatchFormat, samples: readonly RemoteSample[]): Batch {
  const message = createMessage(format);
  for (const sample of samples) message.add(sample);
  return batchOf(message, batch.timeMs);
}

/** Number of samples that the receiver reports as written; undefined without the header. */
function writtenOf(answer: ReceiverAnswer): number | undefined {
  const header = answer.header(writtenHeader);
  return header !== undefined && /^\d+$/.test(header.trim()) ? Number(header) : undefined;
}

/**
 * Prometheus remote write 2.0, or 1.0 for receivers that do not support 2.0. Such a receiver answers 415, or 400 before it has
 * accepted a 2.0 request, or 2xx without the number of samples written, because it finds no series in the message. The version is
 * remembered until the process or the configuration changes.
 *
 * Histograms and summaries are sent as classic series (`_bucket`, `_sum`, `_count`). A series that vanished gets a stale marker,
 * and so does each gauge when the reporter stops. Totals whose beginning the agent did not see have no start timestamp.
 */
export function createRemoteWrite(origin: Origin, limits: RequestLimits): Protocol {
  const sampler = createSampler(origin);
  let known: 'rw1' | 'rw2' | undefined;

  const successVerdict = (answer: ReceiverAnswer, { format, points }: Batch): DeliveryVerdict => {
    const written = writtenOf(answer);
    if (format === 'rw2') {
      if (written === undefined) {
        known = 'rw1';
        return { kind: 'downgrade' };
      }
      known = 'rw2';
    } else known ??= 'rw1';
    const lost = format === 'rw2' ? Math.max(0, points - (written ?? 0)) : 0;
    return lost > 0 ? { kind: 'partial', lost } : { kind: 'accepted' };
  };

  return {
    speaks: (format) => format !== 'otlp',
    endsGaugesOnStop: true,
    async *encode({ view, vanished, timeMs }: Report) {
      const message = createMessage(known ?? 'rw2');
      const slice = createSeriesSlice();
      const take = (sample: RemoteSample): void => message.add(sample);
      const isFull = (): boolean => message.points >= limits.points || message.bytes >= limits.bytes;
      sampler.begin(timeMs);
      for (const { family, series } of vanished) {
        sampler.each(family, series, undefined, take);
        if (isFull()) yield batchOf(message, timeMs);
        if (slice.isOver()) await slice.next();
      }
      for (const family of view.families) {
        for (const series of family.series) {
          sampler.each(family, series, view.numbers(series), take);
          if (isFull()) yield batchOf(message, timeMs);
          if (slice.isOver()) await slice.next();
        }
      }
      if (message.points > 0) yield batchOf(message, timeMs);
    },
    headers: ({ format }) => ({
      ...headersOf[format === 'rw1' ? 'rw1' : 'rw2'],
      'content-encoding': 'snappy',
    }),
    verdictOf(answer, batch) {
      const { status } = answer;
      if (status >= 200 && status < 300) return verdictOfPage(answer) ?? successVerdict(answer, batch);
      if (status === 413) return { kind: 'too_large' };
      const mayBeVersion1 = status === 415 || (status === 400 && known === undefined);
      if (batch.format === 'rw2' && mayBeVersion1) {
        if (status === 415) known = 'rw1';
        return { kind: 'downgrade' };
      }
      // The receiver was mistaken for a 1.0 receiver, or was upgraded.
      if (batch.format === 'rw1' && status === 415) known = undefined;
      const written = batch.format === 'rw2' ? (writtenOf(answer) ?? 0) : 0;
      return verdictOfFailure(status, Math.max(0, batch.points - written));
    },
    async split(batch) {
      const samples = samplesOf(batch.format, unpackSnappy(batch.body));
      if (samples.length < 2) return [];
      const middle = Math.ceil(samples.length / 2);
      return [samples.slice(0, middle), samples.slice(middle)].map((half) =>
        encodeSamples(batch, batch.format, half),
      );
    },
    async convert(batch, wasRefused) {
      if (batch.format !== 'rw2' || !(wasRefused || known === 'rw1')) return batch;
      return encodeSamples(batch, 'rw1', samplesOf('rw2', unpackSnappy(batch.body)));
    },
  };
}
