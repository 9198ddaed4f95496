import { describe, expect, test } from 'vitest';
import { createCounting, feed, feedWhole, tallyOf } from '../../counting.ts';

const at = '2026-01-02T03:04:05.678901234Z';
const entry = '{"level":"info"}';
const docker = (log: string, stream = 'stdout') => `${JSON.stringify({ log, stream, time: at })}\n`;

/** The entries and drops of a file that is not finished, and the bytes counted. */
function count(lines: readonly string[], container: 'auto' | 'none' | 'cri' | 'docker' = 'auto') {
  const counting = createCounting({ history: { container } });
  feed(counting.open(), ...lines);
  return { ...tallyOf(counting), bytes: counting.counts().svc_log_bytes_total };
}
const bytesOf = (...lines: string[]) => lines.join('').length;

describe('lines that Kubernetes wrapped', () => {
  const full = `${at} stdout F ${entry}\n`;

  test.each([
    ['a full line', [full], 1],
    ['an offset in the time', [`2026-01-02T03:04:05.6+02:00 stderr F ${entry}\n`], 1],
    ['further tags', [`${at} stdout F:x:y ${entry}\n`], 1],
    ['pieces', [`${at} stdout P {"lev\n`, `${at} stdout P el":"in\n`, `${at} stdout F fo"}\n`], 1],
    ['an empty last piece', [`${at} stdout P ${entry}\n`, `${at} stdout F \n`], 1],
    ['an empty last piece without its space', [`${at} stdout P ${entry}\n`, `${at} stdout F\n`], 1],
  ])('%s', (_name, lines, entries) => {
    expect(count(lines)).toEqual({ entry: entries, bytes: bytesOf(...lines) });
    expect(count(lines, 'cri')).toEqual(count(lines));
  });

  test('pieces of two streams between each other', () => {
    const out = [`${at} stdout P {"level"\n`, `${at} stdout F :"warn"}\n`];
    const err = [`${at} stderr P {"level"\n`, `${at} stderr F :1}\n`];
    const lines = [out[0]!, err[0]!, full, err[1]!];
    expect(count(lines)).toEqual({ entry: 1, invalid_json: 1, bytes: bytesOf(...lines) });
    const crossed = [out[0]!, err[0]!, out[1]!, err[1]!];
    expect(count(crossed)).toEqual({ entry: 2, bytes: bytesOf(...crossed) });
  });

  test('blank ones and stack traces', () => {
    const lines = ['T\terror\tm', 'goroutine 1', '', '\tmain.go:1'].map((text) => `${at} stderr F ${text}\n`);
    expect(count(lines)).toEqual({ entry: 1, bytes: bytesOf(...lines) });
  });

  test('a line without its wrapping is taken as it is', () => {
    expect(count([full, `${entry}\n`, 'x\n'])).toEqual({ entry: 2, not_console: 1, bytes: full.length + 19 });
  });

  test('an unfinished line is a line when the file is finished', () => {
    const counting = createCounting();
    const lines = [full, `${at} stdout P ${entry}\n`];
    feedWhole(counting.open(), ...lines);
    expect(tallyOf(counting)).toEqual({ entry: 2 });
    expect(counting.counts().svc_log_bytes_total).toBe(bytesOf(...lines));
  });

  test.each([
    `${at} stdout X ${entry}`,
    `${at} stdin F ${entry}`,
    `${at} stdoutF ${entry}`,
    `${at}stdout F ${entry}`,
    `2026-01-02 stdout F ${entry}`,
    `${at} stdout FF ${entry}`,
  ])('is not wrapped: %s', (line) => {
    expect(count([`${line}\n`])).toEqual({ not_console: 1, bytes: line.length + 1 });
  });
});

describe('lines that Docker wrapped', () => {
  test.each([
    ['a full line', [docker(`${entry}\n`)], 1],
    ['pieces', [docker('{"lev'), docker('el":"in'), docker('fo"}\n')], 1],
    ['pieces that end with nothing', [docker(entry), docker('\n')], 1],
    [
      'more fields',
      [`${JSON.stringify({ log: `${entry}\n`, stream: 'stderr', attrs: { a: 'b' }, time: at })}\n`],
      1,
    ],
    ['text beyond ASCII', [docker('{"level":"info","msg":"ü€😀\u2028"}\n')], 1],
    [
      'escapes of Go',
      [docker('X').replace('X', '{\\"level\\":\\"\\u0069nfo\\",\\"a\\":\\"\\u003c\\"}\\n')],
      1,
    ],
  ])('%s', (_name, lines, entries) => {
    expect(count(lines)).toEqual({ entry: entries, bytes: Buffer.byteLength(lines.join('')) });
    expect(count(lines, 'docker')).toEqual(count(lines));
  });

  test('pieces of two streams between each other', () => {
    const lines = [
      docker('{"level":"in'),
      docker('{"level"', 'stderr'),
      docker('fo"}\n'),
      docker(':1}\n', 'stderr'),
    ];
    expect(count(lines)).toEqual({ entry: 2, bytes: bytesOf(...lines) });
  });

  test('several lines in one text', () => {
    const lines = [docker(`${entry}\n\nx\n${entry}\n`)];
    expect(count(lines)).toEqual({ entry: 2, not_console: 1, bytes: bytesOf(...lines) });
  });

  test('a broken wrapping is a broken line', () => {
    const lines = [docker(`${entry}\n`), '{"log":"x\n', '{"level":"info"}\n'];
    expect(count(lines)).toEqual({ entry: 2, invalid_json: 1, bytes: bytesOf(...lines) });
  });

  test('an entry that has a field log is none', () => {
    const lines = ['{"log":"x","level":"info"}\n', '{"log":"x","stream":"stdout","time":1}\n'];
    expect(count(lines)).toEqual({ entry: 2, bytes: bytesOf(...lines) });
  });
});

test('the first line that is not blank decides', () => {
  const wrapped = docker(`${entry}\n`);
  expect(count(['\n', ' \r\n', wrapped, wrapped])).toEqual({ entry: 2, bytes: 4 + 2 * wrapped.length });
  const counting = createCounting();
  feed(counting.open(), `${entry}\n`, wrapped);
  expect(counting.counts()).toMatchObject({
    'svc_log_entries_total{level="info"}': 1,
    svc_log_entries_total: 1,
  });
});

test('nothing is unwrapped where the configuration says none', () => {
  const wrapped = `${at} stdout F ${entry}\n`;
  expect(count([wrapped], 'none')).toEqual({ not_console: 1, bytes: wrapped.length });
});

test('a joined line over the limit is dropped once, its bytes counted', () => {
  const piece = 'x'.repeat(16 * 1024);
  const lines = [...Array(65)].map(() => docker(piece));
  lines.push(docker('\n'), docker(`${entry}\n`));
  expect(count(lines)).toEqual({ entry: 1, too_long: 1, bytes: bytesOf(...lines) });
});
