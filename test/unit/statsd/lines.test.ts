import { describe, expect, test } from 'vitest';
import { lineBed, type Recorded, readOnce } from '../../statsd.ts';

type Row = [what: string, datagram: string, shown: Record<string, Recorded>];

const read: Row[] = [
  // statsd/statsd, docs/metric_types.md
  ['a counter', 'gorets:1|c', { 'counter gorets': 1 }],
  ['a sampled counter', 'gorets:1|c|@0.1', { 'counter gorets': 10 }],
  ['a timer', 'glork:320|ms', { 'histogram glork': [[0.32, 1]] }],
  ['a sampled timer', 'glork:320|ms|@0.1', { 'histogram glork': [[0.32, 10]] }],
  ['a gauge', 'gaugor:333|g', { 'gauge gaugor': 333 }],
  ['a gauge that is changed', 'gaugor:333|g\ngaugor:-10|g\ngaugor:+4|g', { 'gauge gaugor': 327 }],
  ['a gauge that begins signed', 'gaugor:-10|g', { 'gauge gaugor': -10 }],
  ['a gauge of a rate', 'gaugor:5|g|@0.5', { 'gauge gaugor': 5 }],
  ['several metrics', 'a:1|c\nb:2|g\na:3|c\n', { 'counter a': 4, 'gauge b': 2 }],
  ['several of one name', 'a:1|c:2|ms:3|c', { 'counter a': 4, 'histogram a': [[0.002, 1]] }],
  ['several of one name, tags in the name', 'num.host.a:1|c:2:3|c', { 'counter num{"host":"a"}': 6 }],
  ['several of one name, sampled', 'a:1|c|@0.5:2|g', { 'counter a': 2, 'gauge a': 2 }],
  // DogStatsD, datagram format 1.0 to 1.3
  ['a histogram', 'song.length:240|h|@0.5', { 'histogram song.length': [[240, 2]] }],
  ['a tag', 'users.online:1|c|#country:china', { 'counter users.online{"country":"china"}': 1 }],
  ['a rate and a tag', 'u:1|c|@0.5|#country:china', { 'counter u{"country":"china"}': 2 }],
  ['a tag whose value has colons', 'u:1|c|#url:http://x:8', { 'counter u{"url":"http://x:8"}': 1 }],
  ['a bare tag', 'u:1|c|#urgent,env:dev', { 'counter u{"env":"dev","urgent":"true"}': 1 }],
  ['a hash before each tag', 'u:1|c|#a:b,#c:d,#bare', { 'counter u{"a":"b","bare":"true","c":"d"}': 1 }],
  ['no tags behind the sign', 'u:1|c|#', { 'counter u': 1 }],
  ['a sign alone behind a tag', 'u:1|c|#a:b,#', { 'counter u{"a":"b"}': 1 }],
  ['empty tags', 'u:1|c|#,a:b,,c:d,|@1', { 'counter u{"a":"b","c":"d"}': 1 }],
  ['a comma behind the tags', 'u:1|c|#a:b|c:x,y:z', { 'counter u{"a":"b"}': 1 }],
  ['a colon behind a bare tag', 'u:1|c|#a|c:x', { 'counter u{"a":"true"}': 1 }],
  ['blanks', 'a b:1|c|#k:v w', { 'counter a b{"k":"v w"}': 1 }],
  [
    'packed values',
    'page.views:1:2:32|d',
    {
      'histogram page.views': [
        [1, 1],
        [2, 1],
        [32, 1],
      ],
    },
  ],
  ['a packed counter', 'u:1:2:32|c|@0.5|#e:d', { 'counter u{"e":"d"}': 70 }],
  ['a packed gauge', 'u:5:-1:+3|g', { 'gauge u': 7 }],
  ['a section of a later protocol', 'u:1|g|#env:dev|x:y|z9:', { 'gauge u{"env":"dev"}': 1 }],
  ['an empty section at the end', 'u:1|g|@1|', { 'gauge u': 1 }],
  ['a container', 'u:1|g|#env:dev|c:83c0a99c0a54', { 'gauge u{"env":"dev"}': 1 }],
  ['a time', 'u:15|c|#env:dev|T1656581400\nu:1|c|#env:dev|T1656581410', { 'counter u{"env":"dev"}': 16 }],
  ['external data and cardinality', 'u:1|c|e:it-false|card:low', { 'counter u': 1 }],
  // InfluxDB's and Librato's tags
  [
    'tags in the name',
    'users.current,service=payroll,region=us-west:32|g',
    { 'gauge users.current{"region":"us-west","service":"payroll"}': 32 },
  ],
  ['tags behind a hash', 'foo#tag1=bar,tag2=b=z:3|c', { 'counter foo{"tag1":"bar","tag2":"b=z"}': 3 }],
  ['tags of two forms', 'foo,a=1:3|c|#b:2', { 'counter foo{"a":"1","b":"2"}': 3 }],
  ['a tag with a name of objects', 'foo:1|c|#__proto__:x', { 'counter foo{"__proto__":"x"}': 1 }],
  ['such a tag twice', 'foo:1|c|#__proto__:x,__proto__:y', { 'counter foo{"__proto__":"y"}': 1 }],
  // The service's enhanced reporter
  [
    'suffixes',
    'cadence.persistence_latency.cadence_service.cadence-history.operation.GetShard:0.84|ms',
    {
      'histogram cadence.persistence_latency{"cadence_service":"cadence-history","operation":"GetShard"}': [
        [0.84 / 1000, 1],
      ],
    },
  ],
  [
    'suffixes whose values have dots and colons',
    'num.domain.a.b.c.host.10.0.0.7:7933.operation.X:1|c',
    { 'counter num{"domain":"a.b.c","host":"10.0.0.7:7933","operation":"X"}': 1 },
  ],
  ['a last suffix with a port', 'num.host.a:7933:2|c', { 'counter num{"host":"a:7933"}': 2 }],
  ['the name of a tag at the end', 'num.operation:1|c', { 'counter num.operation': 1 }],
  ['a tag out of order', 'num.operation.X.domain.d:1|c', { 'counter num{"operation":"X.domain.d"}': 1 }],
  ['a tag twice', 'num.domain.a.domain.b:1|c', { 'counter num{"domain":"a.domain.b"}': 1 }],
  ['the name of a tag for a value', 'num.domain.host.x:1|c', { 'counter num{"domain":"host.x"}': 1 }],
  ['tags without a name', '.operation.X:1|c', { 'counter .operation.X': 1 }],
  [
    'a bucket of durations',
    'lat.operation.X.1.5ms-2ms:3|c',
    { 'counter lat.samples{"bucket":"1.5ms-2ms","operation":"X"}': 3 },
  ],
  [
    'a bucket of values',
    'size.operation.X.-infinity-0.001000:3|c',
    { 'counter size.samples{"bucket":"-infinity-0.001000","operation":"X"}': 3 },
  ],
  // Numbers and line ends
  ['a carriage return', 'a:1|c\r\nb:2|c\r\n', { 'counter a': 1, 'counter b': 2 }],
  ['no last newline but a return', 'a:1|c\r', { 'counter a': 1 }],
  ['an exponent', 'a:1.5e3|c', { 'counter a': 1500 }],
  ['a plus', 'a:+5|c', { 'counter a': 5 }],
  ['twenty digits', 'a:18446744073709551616|c', { 'counter a': 2 ** 64 }],
  ['a point in front', 'a:.5|c', { 'counter a': 0.5 }],
  ['a negative histogram value', 'a:-5|h', { 'histogram a': [[-5, 1]] }],
  ['a small rate', 'a:1|ms|@1e-8', { 'histogram a': [[0.001, 1e8]] }],
  ['UTF-8', 'größe:1|c|#ort:köln', { 'counter größe{"ort":"köln"}': 1 }],
  ['the sign of what is no UTF-8', 'a\uFFFD:1|c', { 'counter a\uFFFD': 1 }],
  ['a rate of one in a billion', 'a:1|c|@1e-9', { 'counter a': 1 / 1e-9 }],
  ['a rate of all', 'a:1|c|@1', { 'counter a': 1 }],
  ['as many bytes as a line may have', `${'n'.repeat(8190)}:1|c`, { [`counter ${'n'.repeat(8190)}`]: 1 }],
];

const refused: [what: string, datagram: string | Buffer, refused: Record<string, number>][] = [
  ['a rate below one in a billion', 'a:1|c|@9e-10', { invalid_rate: 1 }],
  ['a rate next to 0', 'a:1|c|@1e-300', { invalid_rate: 1 }],
  ['tags in brackets', 'a[k=v,l=w]:1|c', { unsupported_tags: 1 }],
  ['tags in brackets within the name', 'a[k=v]b:1|c', { unsupported_tags: 1 }],
  ['tags after semicolons', 'a;k=v;l=w:1|c', { unsupported_tags: 1 }],
  ['no colon', 'abc', { invalid_line: 1 }],
  ['an empty line', '\n', { invalid_line: 1 }],
  ['an empty line that a carriage return ends', '\r\n', { invalid_line: 1 }],
  ['no name', ':1|c', { invalid_line: 1 }],
  ['no type', 'a:1', { invalid_line: 1 }],
  ['an empty type', 'a:1|', { invalid_line: 1 }],
  ['an empty type and a rate', 'a:1||@1', { invalid_line: 1 }],
  ['NUL in the name', 'a\0b:1|c', { invalid_line: 1 }],
  ['NUL in a tag', 'a:1|c|#k:\0', { invalid_line: 1 }],
  ['NUL alone', '\0\0\0', { invalid_line: 1 }],
  ['a carriage return within', 'a:1|c\rb', { invalid_line: 1 }],
  ['invalid UTF-8 in the name', Buffer.from([0x61, 0xff, 0x3a, 0x31, 0x7c, 0x63]), { invalid_line: 1 }],
  ['invalid UTF-8 in a tag', Buffer.from('a:1|c|#k:\xff', 'latin1'), { invalid_line: 1 }],
  ['a bare word for a section', 'a:1|c|x', { invalid_line: 1 }],
  ['a line that lost its newline', 'a:1|c|#env:devb:2|c', { invalid_line: 1 }],
  ['a tag without a name', 'a:1|c|#:x', { invalid_line: 1 }],
  ['a tag in the name without a value', 'a,b:1|c', { invalid_line: 1 }],
  ['no value', 'a:|c', { invalid_value: 1 }],
  ['a word', 'a:one|c', { invalid_value: 1 }],
  ['NaN', 'a:NaN|g', { invalid_value: 1 }],
  ['infinity', 'a:inf|g', { invalid_value: 1 }],
  ['more than there is', 'a:1e999|g', { invalid_value: 1 }],
  ['a hexadecimal', 'a:0x10|c', { invalid_value: 1 }],
  ['a blank', 'a: 1|c', { invalid_value: 1 }],
  ['two signs', 'a:+-1|c', { invalid_value: 1 }],
  ['two signs of a gauge', 'a:+-1|g', { invalid_value: 1 }],
  ['a tag in the name without a name', 'a,=b:1|c', { invalid_line: 1 }],
  ['tags alone before a hash', '#a=b:1|c', { invalid_line: 1 }],
  ['tags alone before a comma', ',a=b:1|c', { invalid_line: 1 }],
  ['a word that begins like a time', 'a:1|c|Tx', { invalid_line: 1 }],
  ['a negative counter', 'a:-1|c', { invalid_value: 1 }],
  ['a negative timer', 'a:-1|ms', { invalid_value: 1 }],
  ['a negative rate', 'a:1|c|@-1', { invalid_rate: 1 }],
  ['a rate of nothing', 'a:1|c|@0', { invalid_rate: 1 }],
  ['a rate over 1', 'a:1|c|@1.5', { invalid_rate: 1 }],
  ['a rate that is no number', 'a:1|c|@x', { invalid_rate: 1 }],
  ['an empty rate', 'a:1|c|@', { invalid_rate: 1 }],
  ['a rate too small to be turned over', 'a:1|c|@1e-320', { invalid_rate: 1 }],
  ['a set', 'uniques:765|s', { unsupported_type: 1 }],
  ['a set of words', 'uniques:joe|s', { unsupported_type: 1 }],
  ['an unknown type', 'a:1|q', { unsupported_type: 1 }],
  ['an unknown type of a number in another spelling', 'a:1e0|q', { unsupported_type: 1 }],
  ['a type of objects', 'a:1|toString', { unsupported_type: 1 }],
  ['an event', '_e{5,4}:title|text|#env:dev', { unsupported_type: 1 }],
  ['an event that looks like a counter', '_e{1,1}:1|c', { unsupported_type: 1 }],
  ['a service check', '_sc|redis|2|#env:dev|m:timed out', { unsupported_type: 1 }],
  ['a service check without a colon', '_sc|redis|2', { unsupported_type: 1 }],
  ['a long name', `${'n'.repeat(8191)}:1|c`, { line_too_long: 1 }],
  ['8,192 bytes that are no line', 'n'.repeat(8192), { invalid_line: 1 }],
  ['8,193 bytes that are no line', 'n'.repeat(8193), { line_too_long: 1 }],
  ['a long line of nothing', 'n'.repeat(65_507), { line_too_long: 1 }],
];

describe('a datagram', () => {
  test.each(read)('%s', (_, datagram, shown) => expect(readOnce(datagram)).toEqual({ shown, refused: {} }));

  test.each(refused)('refused: %s', (_, datagram, reasons) =>
    expect(readOnce(datagram)).toEqual({ shown: {}, refused: reasons }),
  );

  test.each(['|c\n', '\nz:1|c', ':1|c', '1|c', '\r\n'])(
    'what stands behind its end is not read: %j',
    (behind) => {
      for (const [what, datagram, shown] of read)
        expect([what, readOnce(datagram, {}, behind)]).toEqual([what, { shown, refused: {} }]);
      for (const [what, datagram, reasons] of refused)
        expect([what, readOnce(datagram, {}, behind)]).toEqual([what, { shown: {}, refused: reasons }]);
    },
  );

  test('is read so many lines at a time, which are counted', () => {
    const { reader, shown } = lineBed();
    const bytes = Buffer.from('a:1|c\nbad\na:2|c\na:4|c');
    expect(reader.read(bytes, 0, bytes.length, 0)).toBe(0);
    const third = reader.read(bytes, 0, bytes.length, 2);
    expect([bytes.toString('utf8', third), reader.lines, shown()]).toEqual([
      'a:2|c\na:4|c',
      2,
      { 'counter a': 1 },
    ]);
    expect(reader.read(bytes, third, bytes.length, 10)).toBe(bytes.length);
    expect([reader.lines, shown()]).toEqual([4, { 'counter a': 7 }]);
  });

  test('a bad line far behind its beginning is no long one', () => {
    expect(readOnce(`${'a:1|c\n'.repeat(2000)}bad\nb:1|c`)).toEqual({
      ...{ shown: { 'counter a': 2000, 'counter b': 1 }, refused: { invalid_line: 1 } },
    });
  });

  test('a line that is cut elsewhere than a known one of the same bytes is another', () => {
    expect(readOnce('a:1|c|#x:y\na|c:1|#x:y')).toEqual({
      ...{ shown: { 'counter a{"x":"y"}': 1 }, refused: { invalid_line: 1 } },
    });
  });

  test('a bad line does not harm its neighbours', () => {
    expect(readOnce('a:1|c\nbad\nb:x|c\na:2|c\nc:1|s\n\na:4|c')).toEqual({
      shown: { 'counter a': 7 },
      refused: { invalid_line: 2, invalid_value: 1, unsupported_type: 1 },
    });
  });

  test('a bad value among packed ones, or none behind them', () => {
    expect(readOnce('a:1:x:3|c')).toEqual({ shown: { 'counter a': 4 }, refused: { invalid_value: 1 } });
    expect(readOnce('a:1:3:|c')).toEqual({ shown: { 'counter a': 4 }, refused: { invalid_value: 1 } });
  });

  test('a bad part behind a good one', () => {
    expect(readOnce('a:1|c:x|c:9|c\nb:1|c')).toEqual({
      shown: { 'counter a': 1, 'counter b': 1 },
      refused: { invalid_value: 1 },
    });
  });

  test('a datagram full of parts', () => {
    const parts = 16_000;
    expect(readOnce(`a${':1|c'.repeat(parts)}`)).toEqual({ shown: { 'counter a': parts }, refused: {} });
  });

  test('a packed line may be long', () => {
    const values = Array.from({ length: 20_000 }, () => '1');
    expect(readOnce(`a:${values.join(':')}|c`)).toEqual({ shown: { 'counter a': 20_000 }, refused: {} });
  });

  test('known lines give the same as new ones', () => {
    const bed = lineBed();
    for (let n = 0; n < 3; n++) for (const [, datagram] of refused) bed.read(datagram);
    for (const [reason, count] of Object.entries(bed.refused)) {
      expect(count).toBe(3 * refused.filter(([, , reasons]) => reason in reasons).length);
    }
    expect(bed.shown()).toEqual({});
    expect(bed.knownLines.size).toBe(0);
    for (let n = 0; n < 3; n++) bed.read('a:2|c|#k:v\nt:5|ms\ng:+1|g\na:2:3|c|#k:v');
    expect(bed.shown()).toEqual({
      'counter a{"k":"v"}': 21,
      'histogram t': Array(3).fill([0.005, 1]),
      'gauge g': 3,
    });
    expect(bed.knownLines.size).toBe(3);
    // A line that says when it was sent is one line.
    bed.read('b:1|c|T1656581400\nb:1|c|T1656581401\nb:1|c|@1|T1656581402');
    expect([bed.knownLines.size, bed.shown()['counter b']]).toEqual([5, 3]);
  });

  test('a line that is refused leaves a known series as it is', () => {
    const bed = lineBed();
    bed.read('a:5|g\na:x|g\nc:1|c\nc:-1|c\nc:1e999|c');
    expect(bed.shown()).toEqual({ 'gauge a': 5, 'counter c': 1 });
    expect(bed.refused).toEqual({ invalid_value: 3 });
  });
});

describe('the tag format', () => {
  const all = 'm.operation.X,a=1:1|c|#b:2';
  test.each([
    ['suffix', 'm.operation.X:1|c', { 'counter m{"operation":"X"}': 1 }],
    ['none', 'm.operation.X:1|c', { 'counter m.operation.X': 1 }],
    ['dogstatsd', 'm.operation.X:1|c', { 'counter m.operation.X': 1 }],
    ['dogstatsd', all, { 'counter m.operation.X,a=1{"b":"2"}': 1 }],
    ['influx', all, { 'counter m.operation.X{"a":"1"}': 1 }],
    ['librato', 'm,a=1#c=3:1|c', { 'counter m,a=1{"c":"3"}': 1 }],
    ['none', all, { 'counter m.operation.X,a=1': 1 }],
  ] as const)('%s: %s', (tagFormat, line, shown) =>
    expect(readOnce(line, { tagFormat })).toEqual({ shown, refused: {} }),
  );

  test('a metric whose tags are elsewhere keeps the dots of its name', () => {
    expect(readOnce('my.domain.count:1|c|#env:dev').shown).toEqual({
      'counter my.domain.count{"env":"dev"}': 1,
    });
  });

  test('a prefix alone is no name', () => {
    expect(readOnce('cadence.:1|c', { prefixes: ['cadence.'] })).toEqual({
      ...{ shown: {}, refused: { invalid_line: 1 } },
    });
  });

  test('a prefix is left out', () => {
    expect(readOnce('cadence.restarts:1|c\nother:1|c', { prefixes: ['cadence.'] }).shown).toEqual({
      'counter restarts': 1,
      'counter other': 1,
    });
  });
});
