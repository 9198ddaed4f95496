import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { openStatsd, sendDatagrams } from '../statsd.ts';
import { until } from '../until.ts';

const garbage: [what: string, datagram: string | Buffer, reason: string][] = [
  ['empty', '', 'invalid_line'],
  ['NUL', Buffer.alloc(64), 'invalid_line'],
  ['only a line end', '\r\n', 'invalid_line'],
  ['no colon', 'requests', 'invalid_line'],
  ['more than a number can be', 'requests:1e999|c', 'invalid_value'],
  ['not a number', 'requests:NaN|g', 'invalid_value'],
  ['a negative rate', 'requests:1|c|@-1', 'invalid_rate'],
  ['a rate of 0', 'requests:1|c|@0', 'invalid_rate'],
  ['65,507 bytes of one name', 'x'.repeat(65_507), 'line_too_long'],
  ['65,507 bytes without sense', Buffer.alloc(65_507, 0xff), 'line_too_long'],
  ['invalid UTF-8', Buffer.from([0xc3, 0x28, 0x3a, 0x31, 0x7c, 0x63]), 'invalid_line'],
  ['cut before the type', 'requests:1|', 'invalid_line'],
  ['cut within the value', 'requests:1', 'invalid_line'],
  ['cut within the rate', 'requests:1|c|@', 'invalid_rate'],
  ['a set', 'users:joe|s', 'unsupported_type'],
];

describe('garbage over a socket', () => {
  test('counts by reason, makes no series, and good lines go on', async () => {
    const open = await openStatsd({ listen: '127.0.0.1:0' }, systemClock);
    const address = open.statsd.status().addresses.listen!;
    const expected: Record<string, number> = {};
    for (const [, , reason] of garbage) {
      expected[`statsd/${reason}`] = (expected[`statsd/${reason}`] ?? 0) + 1;
    }
    await sendDatagrams(
      address,
      garbage.map(([, datagram]) => datagram),
    );
    await until(
      'every piece of garbage was counted',
      () => Object.values(open.drops).reduce((sum, n) => sum + n, 0) === garbage.length,
    );
    expect(open.drops).toEqual(expected);
    expect(open.shown()).toEqual({});

    await sendDatagrams(address, ['requests:1|c\ngarbage\nrequests:2|c']);
    await until('the good lines are counted', () => open.shown()['counter requests'] === 3);
  });

  test('a rate of 1e-8 on a timer costs no more than any other line', async () => {
    const open = await openStatsd({ listen: '127.0.0.1:0' }, systemClock);
    const address = open.statsd.status().addresses.listen!;
    await sendDatagrams(address, ['took:320|ms|@1e-8\nhits:1|c|@1e-8\nlast:1|c']);
    await until('the line behind is counted', () => 'counter last' in open.shown());
    expect(open.shown()).toEqual({
      'histogram took': [[0.32, 1e8]],
      'counter hits': 1e8,
      'counter last': 1,
    });
  });
});
