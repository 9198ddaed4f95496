import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FamilyView } from '../../../src/core/model.ts';
import type { TagFormat } from '../../../src/reporters/block.ts';
import {
  counterLine,
  createLineFormatter,
  formsOf,
  gaugeLine,
  totalsOf,
} from '../../../src/reporters/push/statsd-lines.ts';
import { decodeLine } from '../../push-lines.ts';
import { runs } from '../../size.ts';
import { type FamilySpec, viewOf } from '../../view.ts';

const former = (tagFormat: TagFormat, prefixes: string[] = [], instance = 'h1') =>
  createLineFormatter({ tagFormat, prefixes, instance });

/** Every number of a family's first series as a line. */
function linesOf(tagFormat: TagFormat, spec: FamilySpec, prefixes: string[] = [], instance = 'h1'): string[] {
  const family = viewOf([spec]).families[0] as FamilyView;
  const series = family.series[0]!;
  const { first } = totalsOf(family.kind, series);
  const isGauge = (i: number) => family.kind === 'gauge' || family.kind === 'untyped' || i < first;
  return formsOf(former(tagFormat, prefixes, instance), family, series).map((form, i) => {
    const value = spec.series[0]!.numbers[i]!;
    return isGauge(i) ? gaugeLine(form, value) : counterLine(form, value);
  });
}

const requests: FamilySpec = {
  name: 'svc_persistence_requests',
  kind: 'counter',
  series: [{ labels: { svc_service: 'frontend', operation: 'GetShard' }, numbers: [3] }],
};
const latency: FamilySpec = {
  name: 'lat',
  kind: 'histogram',
  series: [{ labels: { op: 'a' }, bounds: ['0.1', '1'], numbers: [1, 2, 3, 4.5, 3] }],
};
const pause: FamilySpec = {
  name: 'gc',
  kind: 'summary',
  series: [{ labels: { op: 'a' }, bounds: ['0.5'], numbers: [0.25, 7.5, 9] }],
};

test.each<[TagFormat, FamilySpec, string[]]>([
  ['suffix', requests, ['svc_persistence_requests.instance.h1.operation.GetShard.svc_service.frontend:3|c']],
  [
    'dogstatsd',
    requests,
    ['svc_persistence_requests:3|c|#instance:h1,operation:GetShard,svc_service:frontend'],
  ],
  ['influx', requests, ['svc_persistence_requests,instance=h1,operation=GetShard,svc_service=frontend:3|c']],
  ['none', requests, ['svc_persistence_requests:3|c']],
  [
    'suffix',
    latency,
    [
      'lat_bucket.instance.h1.le.0_1.op.a:1|c',
      'lat_bucket.instance.h1.le.1.op.a:2|c',
      'lat_bucket.instance.h1.le.+Inf.op.a:3|c',
      'lat_sum.instance.h1.op.a:4.5|c',
      'lat_count.instance.h1.op.a:3|c',
    ],
  ],
  [
    'dogstatsd',
    latency,
    [
      'lat_bucket:1|c|#instance:h1,le:0.1,op:a',
      'lat_bucket:2|c|#instance:h1,le:1,op:a',
      'lat_bucket:3|c|#instance:h1,le:+Inf,op:a',
      'lat_sum:4.5|c|#instance:h1,op:a',
      'lat_count:3|c|#instance:h1,op:a',
    ],
  ],
  [
    'influx',
    latency,
    [
      'lat_bucket,instance=h1,le=0.1,op=a:1|c',
      'lat_bucket,instance=h1,le=1,op=a:2|c',
      'lat_bucket,instance=h1,le=+Inf,op=a:3|c',
      'lat_sum,instance=h1,op=a:4.5|c',
      'lat_count,instance=h1,op=a:3|c',
    ],
  ],
  [
    'none',
    latency,
    [
      'lat_bucket.le.0_1:1|c',
      'lat_bucket.le.1:2|c',
      'lat_bucket.le.+Inf:3|c',
      'lat_sum:4.5|c',
      'lat_count:3|c',
    ],
  ],
  [
    'suffix',
    pause,
    [
      'gc.instance.h1.op.a.quantile.0_5:0.25|g',
      'gc_sum.instance.h1.op.a:7.5|c',
      'gc_count.instance.h1.op.a:9|c',
    ],
  ],
  ['none', pause, ['gc.quantile.0_5:0.25|g', 'gc_sum:7.5|c', 'gc_count:9|c']],
  ['dogstatsd', { name: 'g', kind: 'gauge', series: [{ numbers: [0.7] }] }, ['g:0.7|g|#instance:h1']],
  ['influx', { name: 'u', kind: 'untyped', series: [{ numbers: [2] }] }, ['u,instance=h1:2|g']],
  // A signed gauge is a change, so the absolute value needs two lines.
  ['none', { name: 'g', kind: 'gauge', series: [{ numbers: [-5] }] }, ['g:0|g\ng:-5|g']],
  [
    'dogstatsd',
    { name: 'g', kind: 'gauge', series: [{ numbers: [-5] }] },
    ['g:0|g|#instance:h1\ng:-5|g|#instance:h1'],
  ],
])('%s', (format, spec, lines) => expect(linesOf(format, spec)).toEqual(lines));

describe('prefixes', () => {
  test.each([
    [['svc', 'prod'], 'svc.prod.x:1|c'],
    [['', 'prod'], 'prod.x:1|c'],
    [['svc', ''], 'svc.x:1|c'],
    [['', ''], 'x:1|c'],
    [['a.b-c.', '.d'], 'a.b-c.d.x:1|c'],
    [['a:b|c d', ''], 'a_b_c_d.x:1|c'],
  ])('%j', (prefixes, line) => {
    expect(linesOf('none', { name: 'x', kind: 'counter', series: [{ numbers: [1] }] }, prefixes)).toEqual([
      line,
    ]);
  });
});

describe('values that would end a tag', () => {
  const one = (value: string): FamilySpec => ({
    name: 'x',
    kind: 'counter',
    series: [{ labels: { k: value }, numbers: [1] }],
  });
  test.each<[TagFormat, string, string]>([
    ['suffix', 'a.b:c|d@e#f,g=h;i/j k[l]', 'x.instance.h1.k.a_b_c_d_e_f_g_h_i_j_k_l_:1|c'],
    ['suffix', 'task-list_1+2', 'x.instance.h1.k.task-list_1+2:1|c'],
    ['suffix', 'ünï\n😀', 'x.instance.h1.k.ünï_😀:1|c'],
    ['dogstatsd', 'a.b:c|d@e#f,g=h i\n', 'x:1|c|#instance:h1,k:a.b:c_d@e#f_g=h i_'],
    ['influx', 'a.b:c|d,e=f g', 'x,instance=h1,k=a.b_c_d_e_f_g:1|c'],
    ['none', 'a|b', 'x:1|c'],
  ])('%s %j', (format, value, line) => expect(linesOf(format, one(value))).toEqual([line]));

  test('an empty value is no tag', () => {
    expect(linesOf('suffix', one(''))).toEqual(['x.instance.h1:1|c']);
    expect(linesOf('suffix', one(''), [], '')).toEqual(['x:1|c']);
    expect(linesOf('dogstatsd', one(''), [], '')).toEqual(['x:1|c']);
  });

  test('a series that has its own instance keeps it', () => {
    const own: FamilySpec = {
      name: 'x',
      kind: 'counter',
      series: [{ labels: { instance: 'mine' }, numbers: [1] }],
    };
    expect(linesOf('dogstatsd', own)).toEqual(['x:1|c|#instance:mine']);
  });
});

/** The characters that each format cannot represent, and so loses, according to the test's own table. */
const lost: Record<TagFormat, RegExp> = {
  suffix: /[.:|@#,=;/[\]\s\p{Cc}]/gu,
  influx: /[:|@#,=;[\]\s\p{Cc}]/gu,
  dogstatsd: /[|,\p{Cc}\u2028\u2029]/gu,
  none: /(?:)/gu,
};

test.each<TagFormat>(['suffix', 'dogstatsd', 'influx', 'none'])(
  'whatever the tags, a second parser reads every %s line',
  (format) => {
    const name = fc.stringMatching(/^[a-z_][a-z0-9_]{0,5}$/).filter((tag) => tag !== 'instance');
    const labels = fc.dictionary(name, fc.string({ unit: 'grapheme', maxLength: 12 }), { maxKeys: 5 });
    const value = fc.double({ min: 0, noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(labels, value, fc.string({ maxLength: 6 }), (tags, number, prefix) => {
        const spec: FamilySpec = {
          name: 'x_y',
          kind: 'counter',
          series: [{ labels: tags, numbers: [number] }],
        };
        const [line] = linesOf(format, spec, ['p', prefix.replaceAll('.', '')]);
        const path = prefix.replaceAll('.', '').replace(lost.suffix, '_');
        const received = decodeLine(line!, format, path === '' ? 'p.' : `p.${path}.`);
        const kept = Object.entries({ ...tags, instance: 'h1' }).filter(([, text]) => text !== '');
        const expected = kept.map(([tag, text]) => [tag, text.replace(lost[format], '_')]);
        expect(received).toEqual({
          name: 'x_y',
          tags: format === 'none' ? {} : Object.fromEntries(expected),
          value: number,
          type: 'c',
        });
      }),
      { numRuns: runs(300) },
    );
  },
);
