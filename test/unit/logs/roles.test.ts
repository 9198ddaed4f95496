import { describe, expect, test } from 'vitest';
import { serviceOf } from '../../../src/sources/logs/metrics/line-sinks.ts';
import { createCounting, feed, tallyOf } from '../../counting.ts';

test.each([
  ['history', 'history'],
  ['svc-history', 'history'],
  ['svc_history', 'history'],
  ['my-svc_history', 'history'],
  ['history-x', undefined],
  ['xhistory', undefined],
  ['svc-batch-history', 'batch-history'],
  ['History', undefined],
  ['', undefined],
])('a role field %j means %s', (text, service) => {
  expect(serviceOf(text, ['frontend', 'history', 'batch-history'])).toBe(service);
});

describe('a file that several roles claim', () => {
  const both = { frontend: {}, history: {} };
  const line = (fields: Record<string, unknown>) => `${JSON.stringify({ level: 'info', ...fields })}\n`;

  test('is counted line by line where its role field says', () => {
    const counting = createCounting(both);
    const lines = {
      frontend: line({ service: 'svc-frontend' }),
      history: line({ service: 'history' }) + line({ service: 'svc_history' }),
      unknown: line({}) + line({ service: 'worker' }) + line({ service: 7 }) + line({ service: null }),
    };
    feed(counting.open(), ...Object.values(lines), '{bad\n', '\n');
    expect(tallyOf(counting, 'frontend')).toEqual({ entry: 1 });
    expect(tallyOf(counting, 'history')).toEqual({ entry: 2 });
    expect(tallyOf(counting, 'unknown')).toEqual({ entry: 4, invalid_json: 1 });
    expect(counting.counts('frontend').svc_log_bytes_total).toBe(lines.frontend.length);
    expect(counting.counts('history').svc_log_bytes_total).toBe(lines.history.length);
    expect(counting.counts('unknown').svc_log_bytes_total).toBe(lines.unknown.length + 6);
  });

  test('has the lines of a role that is not watched passed over', () => {
    const counting = createCounting(both, ['history']);
    feed(counting.open(), line({ service: 'frontend' }), line({ service: 'history' }));
    expect(tallyOf(counting, 'history')).toEqual({ entry: 1 });
    expect(counting.counts('frontend')).toEqual({});
    expect(counting.counts('unknown')).toEqual({});
  });

  test('knows each role by its own level key and rules', () => {
    const counting = createCounting({
      frontend: { levelKey: 'lvl', rules: [{ name: 'f', type: 'counter', match: { x: 1 } }] },
      history: { rules: [{ name: 'h', type: 'counter', match: { y: 1 } }] },
    });
    const fields = { lvl: 'warn', x: 1, y: 1 };
    feed(counting.open(), line({ ...fields, service: 'frontend' }), line({ ...fields, service: 'history' }));
    expect(counting.counts('frontend')).toMatchObject({ 'svc_log_entries_total{level="warn"}': 1, f: 1 });
    expect(counting.counts('history')).toMatchObject({ 'svc_log_entries_total{level="info"}': 1, h: 1 });
  });

  test('counts a stack trace where its entry counted, also after a restart', () => {
    const counting = createCounting(both);
    const entry = 'T\terror\tmsg\t{"service":"svc-history"}\n';
    const sink = counting.open();
    feed(sink, entry, 'goroutine 1\n');
    feed(counting.open(['frontend', 'history'], sink.state()), '\tmain.go:1\n');
    expect(counting.counts('history').svc_log_bytes_total).toBe(entry.length + 12 + 11);
    expect(counting.counts('unknown')).toEqual({});
  });
});

test('a file whose only claimant is not watched is passed over', () => {
  const counting = createCounting({ history: {} }, []);
  expect(feed(counting.open(), '{"level":"info"}\nbad\n\0\0rest')).toEqual(Buffer.from('rest'));
  expect([...counting.intake().values]).toEqual([]);
  expect([...counting.drops]).toEqual([]);
});
