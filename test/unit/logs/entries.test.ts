import { describe, expect, test } from 'vitest';
import { createCounting, feed } from '../../counting.ts';

const entriesOf = (counting: ReturnType<typeof createCounting>) =>
  Object.fromEntries(
    Object.entries(counting.counts())
      .filter(([name]) => name.startsWith('svc_log_entries_total'))
      .map(([name, value]) => [name.replace('svc_log_entries_total', ''), value]),
  );

const counted = (...lines: string[]) => {
  const counting = createCounting();
  feed(counting.open(), ...lines.map((line) => `${line}\n`));
  return entriesOf(counting);
};

describe('entries by level and logger', () => {
  test.each([
    ['{"level":"info","logger":"shard"}', '{level="info",logger="shard"}'],
    ['{"level":"info"}', '{level="info"}'],
    ['{"logger":"shard"}', '{logger="shard"}'],
    ['{}', ''],
    ['{"level":"INFO"}', '{level="other"}'],
    ['{"level":"information"}', '{level="other"}'],
    ['{"level":3}', '{level="other"}'],
    ['{"level":""}', ''],
    ['{"level":null,"logger":null}', ''],
    ['{"level":{"a":1},"logger":[1]}', ''],
    ['{"level":"\\u0069nfo"}', '{level="info"}'],
    ['{"\\u006cevel":"info"}', '{level="info"}'],
    ['{"level":"warn","level":"info"}', '{level="info"}'],
    ['{"level":"info","level":null}', ''],
    ['{"level":"info","logger":1.50}', '{level="info",logger="1.5"}'],
    ['{"level":"info","logger":1e400}', '{level="info",logger="Infinity"}'],
    ['{"level":"info","logger":true}', '{level="info",logger="true"}'],
    ['{"level":"info","logger":"\\ud800"}', '{level="info",logger="\ufffd"}'],
    ['{"level":"info","logger":"ü"}', '{level="info",logger="ü"}'],
    ['{"level":"info","logger":"a\\"b"}', '{level="info",logger="a\\"b"}'],
    [
      `{"level":"info","logger":"deep","x":${'['.repeat(99)}${']'.repeat(99)}}`,
      '{level="info",logger="deep"}',
    ],
  ])('%s', (line, series) => {
    expect(counted(line)).toEqual({ [series]: 1 });
  });

  test('are added up, each combination by itself', () => {
    const lines = ['debug', 'info', 'warn', 'error', 'fatal', 'trace'].flatMap((level, i) =>
      Array.from({ length: i + 1 }, (_, n) => JSON.stringify({ level, logger: `l${n % 2}` })),
    );
    expect(counted(...lines, ...lines)).toEqual({
      '{level="debug",logger="l0"}': 2,
      '{level="info",logger="l0"}': 2,
      '{level="info",logger="l1"}': 2,
      '{level="warn",logger="l0"}': 4,
      '{level="warn",logger="l1"}': 2,
      '{level="error",logger="l0"}': 4,
      '{level="error",logger="l1"}': 4,
      '{level="fatal",logger="l0"}': 6,
      '{level="fatal",logger="l1"}': 4,
      '{level="other",logger="l0"}': 6,
      '{level="other",logger="l1"}': 6,
    });
  });

  test('with a level key of the configuration', () => {
    const counting = createCounting({ history: { levelKey: 'severity' } });
    feed(counting.open(), '{"level":"info","severity":"warn"}\n');
    expect(entriesOf(counting)).toEqual({ '{level="warn"}': 1 });
  });
});

test('what has a closed list of values is there at 0 from the start', () => {
  const { values } = createCounting().intake();
  expect([...values].sort()).toEqual(
    [
      'svc_log_bytes_total',
      'svc_log_entries_total{level="error"}',
      'svc_log_entries_total{level="fatal"}',
      'svc_log_lines_dropped_total{reason="invalid_json"}',
      'svc_log_lines_dropped_total{reason="not_console"}',
      'svc_log_lines_dropped_total{reason="not_object"}',
      'svc_log_lines_dropped_total{reason="too_long"}',
      'svc_log_persistence_errors_total',
      'svc_log_skipped_bytes_total{reason="nul_hole"}',
      'svc_log_skipped_bytes_total{reason="start_at_end"}',
      'svc_log_skipped_bytes_total{reason="truncated"}',
      'svc_log_skipped_bytes_total{reason="unreadable"}',
      'svc_log_skipped_bytes_total{reason="vanished"}',
      'svc_role_reporter_errors_total',
    ].map((series) => [series, 0]),
  );
});

test('bytes that the tailer passed over are counted by reason', () => {
  const counting = createCounting();
  counting.open().skip('start_at_end', 1234);
  expect(counting.counts()).toEqual({ 'svc_log_skipped_bytes_total{reason="start_at_end"}': 1234 });
});

test('warnings of the role about its own reporter are counted, whatever their level', () => {
  const counting = createCounting();
  feed(
    counting.open(),
    '{"level":"warn","msg":"error in prometheus reporter","error":"has different label names"}\n',
    '{"level":"error","msg":"error in prometheus reporter"}\n',
    '{"level":"warn","msg":"error in another reporter"}\n',
  );
  expect(counting.counts().svc_role_reporter_errors_total).toBe(2);
});
