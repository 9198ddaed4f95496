import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Kind, RawTags } from '../../../src/core/model.ts';
import {
  createLabeller,
  createPairs,
  identityOf,
  type LabelRules,
  roleOf,
} from '../../../src/core/registry/labels.ts';

const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
const rules: LabelRules = {
  globalTags: {},
  received: true,
  service: '',
  serviceKeys: new Set(['frontend', 'my-frontend', 'bench', 'my-bench']),
  forbidden: new Set(['customer']),
  allowValues: new Set(['batch_id']),
  exempt: false,
};
const global = (globalTags: RawTags) => ({ globalTags });
const label = (tags: RawTags, own: Partial<LabelRules> = {}, kind: Kind = 'counter') => {
  const { labels, faults, service } = createLabeller({ ...rules, ...own }).label(tags, kind);
  return { labels: Object.fromEntries(labels), names: labels.map(([name]) => name), faults, service };
};

describe('labels', () => {
  it.each<[string, RawTags, RawTags, Partial<LabelRules>?, string[]?]>([
    ['are sorted by name', { b: '1', a: '2', A: '3' }, { A: '3', a: '2', b: '1' }],
    ['have no empty value', { a: '', b: '1' }, { b: '1' }],
    ['are well-formed', { a: '\ud83dx' }, { a: '\ufffdx' }],
    ['have sanitized names', { 'a.b-c': '1', '9': '2' }, { _9: '2', a_b_c: '1' }],
    [
      'that meet: the first raw name wins',
      { 'k.1': 'dot', 'k-1': 'dash' },
      { k_1: 'dash' },
      {},
      ['tag_collision'],
    ],
    ['that meet: an empty one does not', { 'k-1': '', 'k.1': 'dot' }, { k_1: 'dot' }],
    ['lose forbidden tags', { 'wf-id': 'x', domain: 'd' }, { domain: 'd' }, {}, ['forbidden_tag']],
    ['lose tags forbidden by configuration', { Customer: 'x' }, {}, {}, ['forbidden_tag']],
    ['lose tags without a name', { '': 'x' }, {}, {}, ['forbidden_tag']],
    ['keep forbidden ones of closed sets', { ts: 'x' }, { ts: 'x' }, { exempt: true }],
    ['are cleaned', { tasklist: `tl-${id}` }, { tasklist: 'tl-_id_' }, {}, ['forbidden_value']],
    ['are not cleaned when they are our own', { tasklist: id }, { tasklist: id }, { received: false }],
    ['are not cleaned when allowed', { 'batch-id': id }, { batch_id: id }],
    [
      'le, quantile and svc_service are never cleaned',
      { le: '1700000000', quantile: id, svc_service: id },
      { le: '1700000000', quantile: id, svc_service: id },
    ],
    ['instance is never cleaned', { instance: id }, { exported_instance: id }],
    [
      'reserved names are renamed',
      { job: 'j', instance: 'i', __name__: 'n' },
      { exported___name__: 'n', exported_instance: 'i', exported_job: 'j' },
    ],
    [
      'the prefix is repeated until it is free',
      { job: 'j', exported_job: 'k' },
      { exported_exported_job: 'j', exported_job: 'k' },
    ],
    [
      'reserved names that meet are one',
      { __a: '1', '_.a': '2' },
      { exported___a: '2' },
      {},
      ['tag_collision'],
    ],
    ['our own keep reserved names', { job: 'j' }, { job: 'j' }, { received: false }],
    ['global tags are added', { a: '1' }, { a: '1', my_cluster: 'dc1' }, global({ 'my.cluster': 'dc1' })],
    [
      'global tags displace',
      { cluster: 'x' },
      { cluster: 'dc1', exported_cluster: 'x' },
      global({ cluster: 'dc1' }),
    ],
    [
      'global tags displace ours too',
      { cluster: 'x' },
      { cluster: 'dc1', exported_cluster: 'x' },
      { globalTags: { cluster: 'dc1' }, received: false },
    ],
    [
      'a renamed one goes round a global tag',
      { job: 'j' },
      { exported_exported_job: 'j', exported_job: 'g' },
      global({ exported_job: 'g' }),
    ],
    [
      'of global tags that meet the first counts, and empty ones do not',
      {},
      { a_b: '1' },
      global({ 'a.b': '1', a_b: '2', c: '', '': 'x' }),
    ],
    ['global tags are not cleaned or forbidden', {}, { time: id }, global({ time: id })],
    [
      'svc_service is no global tag',
      {},
      { svc_service: 'frontend' },
      { globalTags: { svc_service: 'x' }, service: 'frontend' },
    ],
    ['svc_service is added', {}, { svc_service: 'history' }, { service: 'history' }],
    [
      'svc_service that came is kept',
      { svc_service: 'worker' },
      { svc_service: 'worker' },
      { service: 'history' },
    ],
    ['svc_service is normalised', { svc_service: 'cadence_worker' }, { svc_service: 'worker' }],
    [
      'our own svc_service is not',
      { svc_service: 'cadence_worker' },
      { svc_service: 'cadence_worker' },
      { received: false },
    ],
  ])('%s', (_, tags, labels, own = {}, faults = []) => {
    const got = label(tags, own);
    expect(got.labels).toEqual(labels);
    expect(got.names).toEqual([...got.names].sort());
    expect(got.faults).toEqual(faults);
    expect(got.service).toBe(labels.svc_service ?? '');
  });

  it.each<[Kind, string[]]>([
    ['counter', ['le', 'quantile']],
    ['untyped', ['le', 'quantile']],
    ['histogram', ['exported_le', 'quantile']],
    ['summary', ['exported_quantile', 'le']],
  ])('of a %s: what splits it is reserved', (kind, names) => {
    expect(label({ le: '1', quantile: '2' }, {}, kind).names).toEqual(names);
  });

  it.each([
    ['cadence_frontend', 'frontend'],
    ['cadence-frontend', 'frontend'],
    ['my-product-history', 'history'],
    ['a_matching', 'matching'],
    ['frontend', 'frontend'],
    ['my-frontend', 'my-frontend'],
    ['-frontend', '-frontend'],
    ['frontend-a', 'frontend-a'],
    ['myfrontend', 'myfrontend'],
    ['cadence.frontend', 'cadence.frontend'],
    ['a-admin', 'a-admin'],
    ['cadence_bench', 'bench'],
    ['cadence-bench', 'bench'],
    ['cadence_my-bench', 'my-bench'],
    ['bench', 'bench'],
    ['_bench', '_bench'],
    ['workbench', 'workbench'],
    ['cadence_my-frontend', 'my-frontend'],
    ['cadence_worker', 'worker'],
  ])('the role in %s is %s', (value, role) => expect(roleOf(value, rules.serviceKeys)).toBe(role));

  it('of the overflow stand beside the global tags', () => {
    const labeller = createLabeller({ ...rules, globalTags: { cluster: 'dc1', overflow: 'no' } });
    expect(labeller.overflow('frontend')).toEqual([
      ['cluster', 'dc1'],
      ['overflow', 'true'],
      ['svc_service', 'frontend'],
    ]);
    expect(labeller.overflow('')).toEqual([
      ['cluster', 'dc1'],
      ['overflow', 'true'],
    ]);
  });
});

describe('identity', () => {
  it.each<[string, RawTags, RawTags]>([
    ['comma and colon in a value', { a: '1,b:2' }, { a: '1', b: '2' }],
    ['a bar at either side', { a: 'x|', b: 'y' }, { a: 'x', b: '|y' }],
    ['an escape at either side', { a: 'a\\', b: 'b-c' }, { a: 'a-b\\', b: 'c' }],
    ['quotes and brackets', { a: '"],["b","' }, { a: '', b: '' }],
    ['a byte that is no text', { a: '\u00ff', b: 'c' }, { a: '', b: '\u00ffc' }],
    ['name against value', { ab: 'c' }, { a: 'bc' }],
    ['newline', { a: 'x\ny' }, { a: 'x', y: '' }],
    ['nul', { a: 'x\0' }, { a: 'x' }],
  ])('differs: %s', (_, a, b) => {
    const of = (tags: RawTags) =>
      identityOf(createLabeller({ ...rules, received: false }).label(tags, 'counter').labels);
    expect(of(a)).not.toBe(of(b));
  });

  it('is the same if, and only if, the labels are', () => {
    const tags = fc.dictionary(fc.constantFrom('a', 'b', 'ab'), fc.string({ unit: 'binary', maxLength: 4 }));
    fc.assert(
      fc.property(tags, tags, (a, b) => {
        const of = (own: RawTags) =>
          createLabeller({ ...rules, received: false }).label(own, 'counter').labels;
        const flat = (own: RawTags) =>
          of(own).map(([name, value]) => [...`${name} `, ...value].map((c) => c.codePointAt(0)));
        const same = JSON.stringify(flat(a)) === JSON.stringify(flat(b));
        expect(identityOf(of(a)) === identityOf(of(b))).toBe(same);
      }),
    );
  });
});

describe('interned pairs', () => {
  it('of a label with few values outlive those of one with ever new values', () => {
    const pair = createPairs();
    const kept = pair('operation', 'GetShard');
    const first = pair('shard', '0');
    for (let n = 1; n < 50_000; n++) pair('shard', String(n));
    expect(pair('operation', 'GetShard')).toBe(kept);
    expect(pair('shard', '0')).not.toBe(first);
  });

  it('of very many labels are forgotten together', () => {
    const pair = createPairs();
    const first = pair('label', 'value');
    for (let n = 0; n < 50_000; n++) pair(`label_${n}`, 'value');
    expect(pair('label', 'value')).not.toBe(first);
    expect(pair('label', 'value')).toEqual(first);
  });
});
