import { createPause } from '../../pacing.ts';
import {
  type Answer,
  type Batch,
  type Form,
  type Origin,
  type Picture,
  type Protocol,
  type RequestLimits,
  type Verdict,
  verdictOfFailure,
} from '../protocol.ts';
import { packSnappy, unpackSnappy } from '../wire/snappy.ts';
import { type Body, createBody, type Row, rowsOf } from './message.ts';
import { createLines } from './samples.ts';

const writtenHeader = 'x-prometheus-remote-write-samples-written';

const headersOf = {
  rw2: {
    'content-type': 'application/x-protobuf;proto=io.prometheus.write.v2.Request',
    'x-prometheus-remote-write-version': '2.0.0',
  },
  rw1: { 'content-type': 'application/x-protobuf', 'x-prometheus-remote-write-version': '0.1.0' },
} as const;

const batchOf = (body: Body, timeMs: number): Batch => {
  const { form, points } = body;
  return { form, points, timeMs, body: packSnappy(body.take()) };
};

function reworded(batch: Batch, form: Form, rows: readonly Row[]): Batch {
  const body = createBody(form);
  for (const row of rows) body.add(row);
  return batchOf(body, batch.timeMs);
}

/** How many points of a request the receiver says it has written; undefined if it does not say. */
function writtenOf(answer: Answer): number | undefined {
  const header = answer.header(writtenHeader);
  return header !== undefined && /^\d+$/.test(header.trim()) ? Number(header) : undefined;
}

/**
 * Prometheus remote write 2.0, and 1.0 with receivers that do not know it: those that answer 415, those that
 * answer 400 before they ever took a request of 2.0, and those that answer 2xx without saying how many samples
 * they wrote, as a 1.0 receiver does to a message in which it finds nothing. Once found out, a receiver's
 * version holds until the process or the configuration changes.
 *
 * Histograms and summaries go as classic series (`_bucket`, `_sum`, `_count`); a series that is gone gets a stale
 * marker.
 */
export function createRemoteWrite(origin: Origin, limits: RequestLimits): Protocol {
  const lines = createLines(origin);
  let known: 'rw1' | 'rw2' | undefined;

  const judgeSuccess = (answer: Answer, { form, points }: Batch): Verdict => {
    const written = writtenOf(answer);
    if (form === 'rw2') {
      if (written === undefined) {
        known = 'rw1';
        return { kind: 'older' };
      }
      known = 'rw2';
    } else known ??= 'rw1';
    const lost = form === 'rw2' ? Math.max(0, points - (written ?? 0)) : 0;
    return lost > 0 ? { kind: 'taken_in_part', lost } : { kind: 'taken' };
  };

  return {
    speaks: (form) => form !== 'otlp',
    async *encode({ view, vanished, timeMs }: Picture) {
      const body = createBody(known ?? 'rw2');
      const pause = createPause();
      const take = (row: Row): void => body.add(row);
      const isFull = (): boolean => body.points >= limits.points || body.bytes >= limits.bytes;
      lines.begin(timeMs);
      for (const { family, series } of vanished) {
        lines.each(family, series, undefined, take);
        if (isFull()) yield batchOf(body, timeMs);
        if (pause.isDue()) await pause.rest();
      }
      for (const family of view.families) {
        for (const series of family.series) {
          lines.each(family, series, view.numbers(series), take);
          if (isFull()) yield batchOf(body, timeMs);
          if (pause.isDue()) await pause.rest();
        }
      }
      if (body.points > 0) yield batchOf(body, timeMs);
    },
    headers: ({ form }) => ({
      ...headersOf[form === 'rw1' ? 'rw1' : 'rw2'],
      'content-encoding': 'snappy',
    }),
    judge(answer, batch) {
      const { status } = answer;
      if (status >= 200 && status < 300) return judgeSuccess(answer, batch);
      if (status === 413) return { kind: 'split' };
      const mayBeOlder = status === 415 || (status === 400 && known === undefined);
      if (batch.form === 'rw2' && mayBeOlder) {
        if (status === 415) known = 'rw1';
        return { kind: 'older' };
      }
      // A receiver that was taken for an old one, or has become a new one since.
      if (batch.form === 'rw1' && status === 415) known = undefined;
      const written = batch.form === 'rw2' ? (writtenOf(answer) ?? 0) : 0;
      const isRetried = status === 429 || status >= 500;
      return verdictOfFailure(status, isRetried, Math.max(0, batch.points - written));
    },
    async split(batch) {
      const rows = rowsOf(batch.form, unpackSnappy(batch.body));
      if (rows.length < 2) return [];
      const middle = Math.ceil(rows.length / 2);
      return [rows.slice(0, middle), rows.slice(middle)].map((half) => reworded(batch, batch.form, half));
    },
    async inKnownForm(batch, isRefused) {
      if (batch.form !== 'rw2' || !(isRefused || known === 'rw1')) return batch;
      return reworded(batch, 'rw1', rowsOf('rw2', unpackSnappy(batch.body)));
    },
  };
}
