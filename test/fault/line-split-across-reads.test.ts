import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createCounting, feed, feedWhole } from '../counting.ts';

const at = '2026-01-02T03:04:05.678Z';
const json = (fields: object) => JSON.stringify({ level: 'info', ts: at, msg: 'ü€😀', ...fields });
const docker = (log: string) => JSON.stringify({ log, stream: 'stdout', time: at });
const trace = [`${at}\tfatal\tdied\t{"code":1}`, 'goroutine 1 [running]:', '', '\tmain.go:7'];

/** Files in which each byte that matters is near a boundary. */
const files: Record<string, Buffer> = {
  'JSON with CRLF, blanks, a hole, surrogates and broken lines': Buffer.from(
    `${json({})}\r\n\r\n \n\0\0\0${json({ logger: '\ud83d' })}\n{"level":"err\nnope\n[1]\n{"level":"warn"}\n\0\0`,
  ),
  'console entries and a stack trace': Buffer.from(
    `x\n${trace.join('\n')}\n${json({})}\n\tlost\n${trace.join('\r\n')}`,
  ),
  'lines of Kubernetes in pieces': Buffer.from(
    `${at} stdout P {"level":\n${at} stderr P ${trace[0]}\n${at} stdout F "info"}\n${at} stderr F !\n${at} stderr F \tmain.go:7\n${at} stdout P {}`,
  ),
  'lines of Docker in pieces': Buffer.from(
    `${docker('{"level":')}\n${docker('"info","msg":"ü"}\n')}\n${docker(`${json({})}\n`)}\n${docker('{"level":"warn"}')}\n`,
  ),
  'the nasty corpus': readFileSync(new URL('../fixtures/logs/nasty.jsonl', import.meta.url)),
};

const countWhole = (bytes: Buffer) => {
  const counting = createCounting();
  feedWhole(counting.open(), bytes);
  return { counts: counting.counts(), drops: Object.fromEntries(counting.drops) };
};

describe.each(Object.entries(files))('%s', (_name, bytes) => {
  const whole = countWhole(bytes);

  test('split at every byte', () => {
    for (let cut = 0; cut <= bytes.length; cut++) {
      const counting = createCounting();
      feedWhole(counting.open(), bytes.subarray(0, cut), bytes.subarray(cut));
      expect({ cut, counts: counting.counts(), drops: Object.fromEntries(counting.drops) }).toEqual({
        cut,
        ...whole,
      });
    }
  });

  test.each([1, 2, 3, 5, 7])('read %i bytes at a time', (size) => {
    const counting = createCounting();
    const chunks: Buffer[] = [];
    for (let i = 0; i < bytes.length; i += size) chunks.push(bytes.subarray(i, i + size));
    feedWhole(counting.open(), ...chunks);
    expect({ counts: counting.counts(), drops: Object.fromEntries(counting.drops) }).toEqual(whole);
  });

  test('restarted at every byte', () => {
    for (let cut = 0; cut <= bytes.length; cut++) {
      const counting = createCounting();
      const before = counting.open();
      const rest = feed(before, bytes.subarray(0, cut));
      const after = counting.open(undefined, before.state()?.slice());
      feedWhole(after, Buffer.concat([rest, bytes.subarray(cut)]));
      expect({ cut, counts: counting.counts(), drops: Object.fromEntries(counting.drops) }).toEqual({
        cut,
        ...whole,
      });
    }
  });
});

test('the counts are those of the lines', () => {
  const [first, console, cri, dockers] = Object.values(files).map(countWhole);
  expect(first).toMatchObject({
    counts: {
      'svc_log_entries_total{level="info"}': 1,
      'svc_log_entries_total{level="info",logger="\ufffd"}': 1,
      'svc_log_entries_total{level="warn"}': 1,
      'svc_log_lines_dropped_total{reason="invalid_json"}': 1,
      'svc_log_lines_dropped_total{reason="not_console"}': 2,
      'svc_log_skipped_bytes_total{reason="nul_hole"}': 5,
      svc_log_bytes_total: Object.values(files)[0]!.length - 5,
    },
    drops: { 'logs/invalid_json': 1, 'logs/not_console': 2 },
  });
  expect(console!.counts).toMatchObject({
    'svc_log_entries_total{level="fatal"}': 2,
    'svc_log_entries_total{level="info"}': 1,
    'svc_log_lines_dropped_total{reason="not_console"}': 2,
  });
  expect(cri!.counts).toMatchObject({
    'svc_log_entries_total{level="info"}': 1,
    'svc_log_entries_total{level="fatal",logger="died"}': 1,
    svc_log_entries_total: 1,
    svc_log_bytes_total: Object.values(files)[2]!.length,
  });
  expect(dockers!.counts).toMatchObject({
    'svc_log_entries_total{level="info"}': 2,
    'svc_log_entries_total{level="warn"}': 1,
    svc_log_bytes_total: Object.values(files)[3]!.length,
  });
});
