import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createSliceQueue } from '../../../src/core/slices.ts';
import { createVocabulary } from '../../../src/core/vocabulary.ts';
import { createVocabularyDetector } from '../../../src/core/vocabulary-detector.ts';
import { startExpiry } from '../../../src/sources/statsd/lines/known-lines.ts';
import { createSeriesRecorder } from '../../../src/sources/statsd/lines/statsd-series.ts';
import { createSenders } from '../../../src/sources/statsd/listen/senders.ts';
import { createFraming } from '../../../src/sources/statsd/listen/stream.ts';
import { createKernelDrops, localText, rowsOf } from '../../../src/sources/statsd/listen/udp.ts';
import { manualClock } from '../../clock.ts';
import { testRegistry, wideLimits } from '../../registry.ts';
import { detectedLines, recordingIntake } from '../../statsd.ts';
import { until } from '../../until.ts';

describe('the table of the kernel', () => {
  // The rows come from a real /proc/net/udp and udp6.
  const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 1234: 0100007F:1FBD 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 451236 2 0000000000000000 7031
 1300: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000   100        0 20125 2 0000000000000000 0
 1301: 0100007F:1FBE 00000000:0000 07 00000000:00000000 00:00000000 00000000   100        0 20126 2 0000000000000000
`;
  test('rows', () => {
    expect(rowsOf(table)).toEqual([
      { local: '0100007F:1FBD', inode: '451236', drops: 7031 },
      { local: '00000000:0044', inode: '20125', drops: 0 },
    ]);
  });

  test('drops since the last poll, of the own socket, over the end of 32 bits', () => {
    const local = localText('127.0.0.1', 8125);
    const row = (inode: string, drops: number) =>
      `1: ${local} 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 ${inode} 2 0 ${drops}`;
    let drops = 7;
    let present = true;
    const read = (path: string) => {
      expect(path).toBe('/proc/net/udp');
      return ['head', row('1', 999), ...(present ? [row('2', drops)] : [])].join('\n');
    };
    const kernel = createKernelDrops('127.0.0.1', 8125, read, () => new Set(['2', '3']));
    expect([kernel.poll(), kernel.poll()]).toEqual([7, 0]);
    drops = 4_294_967_290;
    expect(kernel.poll()).toBe(4_294_967_283);
    drops = 4;
    expect([kernel.poll(), kernel.poll()]).toEqual([10, 0]);
    present = false;
    expect(kernel.poll()).toBe(0);
    const other = createKernelDrops('127.0.0.1', 8125, read, () => new Set(['3']));
    expect(other.poll()).toBe(0);
  });

  test('a machine without the table counts nothing', () => {
    const none = () => {
      throw new Error('ENOENT');
    };
    expect(createKernelDrops('::1', 8125, none).poll()).toBe(0);
  });

  test.each([
    ['127.0.0.1', 8125, '0100007F:1FBD'],
    ['0.0.0.0', 68, '00000000:0044'],
    ['10.1.2.3', 65535, '0302010A:FFFF'],
    ['::', 8125, '00000000000000000000000000000000:1FBD'],
    ['::1', 8125, '00000000000000000000000001000000:1FBD'],
    ['fe80::1:2%eth0', 1, '000080FE000000000000000002000100:0001'],
    ['::ffff:127.0.0.1', 1, '0000000000000000FFFF00000100007F:0001'],
    ['::ffff:10.1.2.3', 1, '0000000000000000FFFF00000302010A:0001'],
    ['2001:db8:1:2:3:4:5:6', 1, 'B80D0120020001000400030006000500:0001'],
  ])('%s on a little-endian machine', (address, port, text) =>
    expect(localText(address, port, true)).toBe(text),
  );

  test('on a big-endian machine', () => {
    expect(localText('127.0.0.1', 8125, false)).toBe('7F000001:1FBD');
  });
});

describe('senders', () => {
  const allowed = (senders: string[], address: string) => createSenders(senders, () => 0).allows(address);
  test.each<[string[], string, boolean]>([
    [[], '127.0.0.1', true],
    [[], '127.8.9.1', true],
    [[], '::1', true],
    [[], '::ffff:127.0.0.1', true],
    [[], '203.0.113.9', false],
    [[], '2001:db8::9', false],
    [['10.0.0.0/8'], '10.255.0.1', true],
    [['10.0.0.0/8'], '::ffff:10.255.0.1', true],
    [['10.0.0.0/8'], '11.0.0.1', false],
    [['10.0.0.0/8'], '127.0.0.1', false],
    [['fd00::/8'], 'fd12::3', true],
    [['fd00::/8'], 'fe80::3%eth0', false],
    [['192.0.2.7', '192.0.2.8'], '192.0.2.8', true],
    [['192.0.2.7'], '192.0.2.9', false],
    [['0.0.0.0/0', '::/0'], '203.0.113.9', true],
  ])('%j: %s', (senders, address, answer) => expect(allowed(senders, address)).toBe(answer));

  test('one is judged once, and strangers without end take no memory without end', () => {
    const senders = createSenders(['10.0.0.0/8'], () => 0);
    for (let n = 0; n < 5000; n++) expect(senders.allows(`192.168.${n >> 8}.${n & 255}`)).toBe(false);
    expect(senders.allows('10.0.0.1')).toBe(true);
  });

  test('this machine has the addresses of its interfaces; one that comes up is known within a minute', () => {
    const up = new Set(['198.51.100.7']);
    const asked = vi.spyOn(os, 'networkInterfaces').mockImplementation(() => ({
      ...{ gone: undefined, lo: [{ address: '127.0.0.1' }] as os.NetworkInterfaceInfo[] },
      eth0: [...up].map((address) => ({ address }) as os.NetworkInterfaceInfo),
    }));
    syncBuiltinESMExports();
    onTestFinished(() => {
      asked.mockRestore();
      syncBuiltinESMExports();
    });
    const timesAsked = () => asked.mock.calls.length;
    let nowMs = 5_000;
    const senders = createSenders([], () => nowMs);
    const [own, late] = ['198.51.100.7', '198.51.100.8'];
    for (let n = 0; n < 3; n++) expect([senders.allows(own), senders.allows(late)]).toEqual([true, false]);
    expect(timesAsked()).toBe(2);
    up.add(late);
    nowMs += 60_000;
    expect([senders.allows(late), timesAsked()]).toEqual([false, 2]);
    nowMs += 1;
    expect([senders.allows(late), timesAsked()]).toEqual([true, 3]);
    // At most 1,024 addresses are remembered; then all are checked again.
    for (let n = 0; n < 1023; n++) senders.allows(`203.0.${n >> 8}.${n & 255}`);
    expect([senders.allows(late), timesAsked()]).toEqual([true, 1026]);
    expect([senders.allows('192.0.2.1'), senders.allows(late), timesAsked()]).toEqual([false, true, 1028]);
  });

  test('while the system does not tell the addresses of this machine, others than loopback are refused, and asked for again', () => {
    let isExhausted = true;
    const interfaces = () => {
      if (isExhausted) throw new Error('A system error occurred: uv_interface_addresses returned error 24');
      return { eth0: [{ address: '198.51.100.7' } as os.NetworkInterfaceInfo] };
    };
    const senders = createSenders([], () => 0, interfaces);
    const answers = () => ['127.0.0.1', '198.51.100.7', '203.0.113.9'].map(senders.allows);
    expect(answers()).toEqual([true, false, false]);
    isExhausted = false;
    expect(answers()).toEqual([true, true, false]);
    isExhausted = true;
    expect(answers()).toEqual([true, true, false]);
  });
});

describe('framing', () => {
  const frame = (chunks: Buffer[], lineBytes = 10) => {
    const got = { lines: '', long: [] as string[], cut: [] as string[] };
    const framing = createFraming({
      lineBytes,
      onLines: (bytes) => {
        got.lines += bytes.toString('latin1');
      },
      onLong: (start) => got.long.push(start.toString('latin1')),
      onCut: (rest) => got.cut.push(rest.toString('latin1')),
    });
    for (const chunk of chunks) framing.write(chunk);
    framing.end();
    return got;
  };

  test('a line that is too long is passed over to its end, however it is cut', () => {
    const text = `a:1|c\n${'x'.repeat(30)}\nb:1|c\n`;
    for (const size of [1, 7, 20]) {
      const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
        Buffer.from(text.slice(i * size, (i + 1) * size)),
      );
      const got = frame(chunks);
      expect(got.lines).toBe('a:1|c\nb:1|c\n');
      expect(got.long).toHaveLength(1);
      expect(got.cut).toEqual([]);
    }
  });

  test.each([
    [10, { lines: 'xxxxxxxxxx\n', long: [], cut: [] }],
    [11, { lines: '', long: ['xxxxxxxxxxx'], cut: [] }],
  ])('a line of %i bytes that comes before its newline', (bytes, expected) => {
    expect(frame([Buffer.from('x'.repeat(bytes)), Buffer.from('\n')])).toEqual(expected);
  });

  test('what has no newline at the end is no line', () => {
    expect(frame([Buffer.from('a:1|c\nb:2')])).toEqual({ lines: 'a:1|c\n', long: [], cut: ['b:2'] });
  });

  test('any cut gives the same lines', () => {
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z:|1]{0,9}$/), { maxLength: 10 }),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 20 }),
        (lines, sizes) => {
          const text = lines.map((line) => `${line}\n`).join('');
          const chunks: Buffer[] = [];
          for (let at = 0, n = 0; at < text.length; n++) {
            const size = sizes[n % sizes.length]!;
            chunks.push(Buffer.from(text.slice(at, at + size)));
            at += size;
          }
          expect(frame(chunks)).toEqual({ lines: text, long: [], cut: [] });
        },
      ),
    );
  });
});

describe('turns', () => {
  test('a piece is worked on for 2 ms of a turn, in order, and goes on in the next', async () => {
    let nowMs = 0;
    const slices = createSliceQueue({ monotonicMs: () => nowMs });
    const steps: { piece: string; turn: number }[] = [];
    let turn = 0;
    const countTurns = () => {
      turn += 1;
      if (steps.length < 12) setImmediate(countTurns);
    };
    const piece = (name: string) => {
      let left = 6;
      return () => {
        steps.push({ piece: name, turn });
        nowMs += 1;
        left -= 1;
        return left === 0;
      };
    };
    expect(slices.mayRun()).toBe(true);
    slices.later(piece('a'), 1);
    slices.later(piece('b'), 1);
    expect(slices.mayRun()).toBe(false);
    setImmediate(countTurns);
    await until('both pieces are done', () => steps.length === 12);
    expect(steps.map(({ piece: name }) => name).join('')).toBe('aaaaaabbbbbb');
    for (let n = 0; n <= turn; n++)
      expect(steps.filter((step) => step.turn === n).length).toBeLessThanOrEqual(2);
  });

  test('what waits is bounded: beyond, work goes on regardless', () => {
    const slices = createSliceQueue({ monotonicMs: () => 0 });
    let done = 0;
    for (let n = 0; n < 100; n++) {
      slices.later(() => {
        done += 1;
        return true;
      }, 65_000);
    }
    expect(done).toBeGreaterThanOrEqual(100 - Math.ceil((4 * 1024 * 1024) / 65_000));
    slices.finish();
    expect(done).toBe(100);
  });
});

/** Everything behind a socket, with a clock that the test advances. */
function path(detector = createVocabularyDetector([])) {
  const clock = manualClock();
  const slices = createSliceQueue(clock);
  const intake = recordingIntake(detector);
  const recorder = createSeriesRecorder({ intake, detector, bounds: [1, 5] });
  const { knownLines, read } = detectedLines({ detector, recorder, slices, clock });
  return { clock, slices, knownLines, read, shown: intake.shown };
}

describe('expiry', () => {
  test('a series that is not heard of goes, one that is heard of stays', async () => {
    const { clock, slices, knownLines, read, shown } = path();
    const stop = startExpiry(knownLines, 1000, { clock, slices });
    read('a:1|c\nb:1|c\nb:2|g');
    for (let n = 0; n < 8; n++) {
      clock.advance(200);
      read('b:1|c');
    }
    await until('two lines are forgotten', () => knownLines.size === 1);
    expect(shown()).toEqual({ 'counter b': 9 });
    read('a:5|c');
    expect(shown()).toEqual({ 'counter b': 9, 'counter a': 5 });
    stop();
  });

  test('hundreds go, and none after the stop', async () => {
    const { clock, slices, knownLines, read } = path();
    const stop = startExpiry(knownLines, 1000, { clock, slices });
    for (let n = 0; n < 300; n++) read(`a${n}:1|c`);
    clock.advance(1500);
    await until('all lines are forgotten', () => knownLines.size === 0);
    stop();
    expect(clock.waiting).toBe(0);
  });

  test('nothing goes before its time', async () => {
    const { clock, slices, knownLines, read } = path();
    const stop = startExpiry(knownLines, 1000, { clock, slices });
    read('a:1|c');
    clock.advance(1000);
    let isDone = false;
    slices.whenIdle(() => {
      isDone = true;
      return true;
    });
    await until('the sweeps are done', () => isDone);
    expect(knownLines.size).toBe(1);
    stop();
  });
});

describe('words', () => {
  const table = createVocabulary({
    name: 'product',
    metrics: {
      starts: 'svc_restarts',
      lat: 'svc_lat',
      lat_ns: { to: 'svc_lat', unless: ['lat'] },
      only: 'svc_only',
      depth: 'svc_depth',
    },
    tags: { wf: 'workflow' },
  });
  const other = createVocabulary({ name: 'other', metrics: { starts: 'x', lat: 'z', alone: 'y' }, tags: {} });

  test('what came before the words were recognised is in the series that is shown after', async () => {
    const { clock, read, shown } = path(createVocabularyDetector([table, other]));
    read(
      'starts:1|c|#wf:a\nlat:500|ms|@0.5\nstarts:1|c|#wf:a\nmine:3|g\nmine:+1|g\ndepth:5|g\ndepth:+3|g\ndepth:-1|g',
    );
    clock.advance(1000);
    expect(Object.keys(shown())).toContain('counter starts{"wf":"a"}');
    read('only:7|g');
    clock.advance(1000);
    await until('the names are translated', () => !('counter starts{"wf":"a"}' in shown()));
    read('starts:1|c|#wf:a\nlat:100|ms|@0.5');
    expect(shown()).toEqual({
      'counter svc_restarts{"workflow":"a"}': 3,
      'histogram svc_lat': [
        [0.5, 2],
        [0.1, 2],
      ],
      'gauge mine': 4,
      'gauge svc_only': 7,
      'gauge svc_depth': 7,
    });
  });

  test('hundreds of series are translated, beside those that went before or meanwhile', async () => {
    const { clock, knownLines, read, shown } = path(createVocabularyDetector([table, other]));
    for (let n = 0; n < 300; n++) read(`starts:1|c|#wf:${n}`);
    read('only:7|g');
    knownLines.forget(0);
    clock.advance(1000);
    knownLines.forget(299);
    await until('they are translated', () => !Object.keys(shown()).some((key) => key.includes('"wf"')));
    const wanted = Array.from({ length: 298 }, (_, i) => [`counter svc_restarts{"workflow":"${i + 1}"}`, 1]);
    expect(shown()).toEqual({ ...Object.fromEntries(wanted), 'gauge svc_only': 7 });
  });

  test('of lines over a limit only those are kept that came before the words were recognised', () => {
    const { clock, intake, shown } = testRegistry({ limits: { ...wideLimits, seriesPerMetric: 1 } });
    const detector = createVocabularyDetector([]);
    const recorder = createSeriesRecorder({
      intake: intake({ component: 'statsd', translate: detector.translate }),
      ...{ detector, bounds: [1] },
    });
    const { knownLines, read } = detectedLines({
      ...{ detector, recorder, clock },
      slices: createSliceQueue(clock),
    });
    read('a:1|c|#wf:1\na:1|c|#wf:2');
    expect([knownLines.size, knownLines.refusedLines]).toEqual([2, 0]);
    // Lines beyond 2,048 of them leave nothing behind, however a number is written.
    for (let n = 3; n < 2048 + 9; n++) read(`a:1|c|#wf:${n}\na:+01|c|#wf:${n}`);
    expect(knownLines.size).toBe(2048);
    for (let id = 2; id < 2048; id++) knownLines.forget(id);
    clock.advance(1000);
    read('a:1|c|#wf:3');
    expect([knownLines.size, knownLines.refusedLines]).toEqual([2, 1]);
    knownLines.forget(0);
    knownLines.forget(1);
    knownLines.forgetRefused();
    expect(shown()).toEqual({});
  });
});

describe('words of series that several lines share, at a real registry', () => {
  test.each([
    ['a counter', 'starts:1|c\nstarts:1|c|@0.5', { 'svc_restarts{svc_service="frontend"}': 3 }],
    [
      'a counter whose tags come in another order',
      'starts:1|c|#a:1,b:2\nstarts:1|c|#b:2,a:1',
      { 'svc_restarts{a="1",b="2",svc_service="frontend"}': 2 },
    ],
    ['a histogram', 'lat:500|ms\nlat:500|ms|@0.5', { 'svc_lat{svc_service="frontend"}': [3, 3, 3, 1.5, 3] }],
  ])('%s is translated whole', async (_, lines, expected) => {
    const bed = testRegistry();
    const table = createVocabulary({
      name: 'product',
      metrics: { starts: 'svc_restarts', lat: 'svc_lat', one: 'svc_one', two: 'svc_two' },
      tags: {},
    });
    const detector = createVocabularyDetector([
      table,
      createVocabulary({ name: 'other', metrics: { alone: 'y' }, tags: {} }),
    ]);
    const slices = createSliceQueue(bed.clock);
    const intake = bed.intake({ component: 'statsd', tagService: true, translate: detector.translate });
    const recorder = createSeriesRecorder({ intake, detector, bounds: [1, 5] });
    const { read } = detectedLines({ detector, recorder, slices, clock: bed.clock });
    const text = `${lines}\none:1|g\ntwo:2|g`;
    read(text);
    bed.clock.advance(1000);
    const shown = { ...expected, 'svc_one{svc_service="frontend"}': 1, 'svc_two{svc_service="frontend"}': 2 };
    await until('all names are translated', () => isDeepStrictEqual(bed.shown(), shown));
    expect(bed.shown()).toEqual(shown);
  });
});
