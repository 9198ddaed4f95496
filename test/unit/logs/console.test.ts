import { describe, expect, test } from 'vitest';
import type { LogEncoding } from '../../../src/sources/logs/options.ts';
import { createCounting, feed, tallyOf } from '../../counting.ts';

const ts = '2021-09-24T21:07:03.242-0700';
const rule = {
  name: 'seen',
  type: 'counter' as const,
  labels: { msg: 'msg', domain: 'Domain', logger: 'logger', ts: 'ts' },
};

/** The labels that one line's columns and JSON fill, and the entry's series. */
function read(line: string, encoding: LogEncoding) {
  const counting = createCounting({
    history: { encoding, rules: [{ ...rule, labels: { ...rule.labels } }] },
  });
  feed(counting.open(), `${line}\n`);
  const seen = Object.keys(counting.counts()).find((name) => name.startsWith('seen'));
  const entry = Object.keys(counting.counts()).find((name) => name.startsWith('svc_log_entries_total'));
  return {
    entry: entry?.replace('svc_log_entries_total', ''),
    labels:
      seen &&
      Object.fromEntries(
        [...seen.matchAll(/(\w+)=("(?:[^"\\]|\\.)*")/g)].map(([, k, v]) => [k, JSON.parse(v!)]),
      ),
  };
}

describe('a console entry', () => {
  test.each<[string, columns: string, entry: string, labels: object, time?: string]>([
    [
      'msg and JSON',
      `info\tStarted\t{"Domain": "orders"}`,
      '{level="info"}',
      { msg: 'Started', domain: 'orders' },
    ],
    ['msg alone', `error\tBad`, '{level="error"}', { msg: 'Bad' }],
    ['CRLF', `error\tBad\r`, '{level="error"}', { msg: 'Bad' }],
    ['CRLF behind JSON', `error\tBad\t{"Domain":"d"}\r`, '{level="error"}', { msg: 'Bad', domain: 'd' }],
    ['a logger', `warn\tshard\tSlow\t{}`, '{level="warn",logger="shard"}', { msg: 'Slow', logger: 'shard' }],
    [
      'a caller',
      `INFO\tcommon/sample_helper.go:109\tLogger created.\t{"Domain": "d"}`,
      '{level="other"}',
      { msg: 'Logger created.', domain: 'd' },
    ],
    [
      'a logger and a caller',
      `info\tscanner\ta/b.go:7\tOk`,
      '{level="info",logger="scanner"}',
      { msg: 'Ok', logger: 'scanner' },
    ],
    ['no msg', `info`, '{level="info"}', {}],
    ['JSON alone', `info\t{"Domain":"d"}`, '{level="info"}', { domain: 'd' }],
    [
      'braces that are no JSON',
      `info\tshard\t{nothing}`,
      '{level="info",logger="shard"}',
      { logger: 'shard', msg: '{nothing}' },
    ],
    ['colours', `\u001b[34mINFO\u001b[0m\tOk`, '{level="other"}', { msg: 'Ok' }],
    ['colours round a level of the spec', `\u001b[31merror\u001b[0m\tOk`, '{level="error"}', { msg: 'Ok' }],
    ['a level of the logger that the spec has not', `dpanic\tOk`, '{level="other"}', { msg: 'Ok' }],
    [
      'a key that is a column too: the later wins',
      `info\tm\t{"msg":"n","level":"warn","logger":null}`,
      '{level="warn"}',
      { msg: 'n' },
    ],
    [
      'deep JSON',
      `info\tm\t{"x":${'['.repeat(99)}${']'.repeat(99)},"Domain":"d"}`,
      '{level="info"}',
      { msg: 'm', domain: 'd' },
    ],
    ['epoch time', 'info\tm', '{level="info"}', { msg: 'm' }, '1632542823.24'],
  ])('with %s', (_name, columns, entry, labels, time = ts) => {
    for (const encoding of ['console', 'auto'] as const)
      expect(read(`${time}\t${columns}`, encoding)).toEqual({ entry, labels: { ts: time, ...labels } });
  });

  test.each([
    ['an unknown level', `${ts}\tnotice\tm`],
    ['no tab', `${ts} info m`],
    ['nothing before the level', '\tinfo\tm'],
    ['no level', `${ts}\t`],
    ['the level in the third column', `${ts}\tx\tinfo\tm`],
    ['JSON, where the configuration says console', '{"level":"info"}'],
  ])('is no line with %s', (_name, line) => {
    const counting = createCounting({ history: { encoding: 'console' } });
    feed(counting.open(), `${line}\n`);
    expect(tallyOf(counting)).toEqual({ not_console: 1 });
  });

  test('counts like the same entry in JSON', () => {
    const fields = { 'wf-domain-name': 'orders', 'store-operation': 'update-shard', error: 'tab\t"quote"' };
    const msg = 'Persistent store operation failure';
    const rules = [
      { name: 'r', type: 'counter' as const, labels: { domain: 'wf-domain-name', error: 'error' } },
    ];
    const [json, console] = [createCounting({ history: { rules } }), createCounting({ history: { rules } })];
    feed(json.open(), `${JSON.stringify({ level: 'error', ts, logger: 'shard', msg, ...fields })}\n`);
    feed(console.open(), `${ts}\terror\tshard\t${msg}\t${JSON.stringify(fields)}\n`);
    const withoutBytes = ({ svc_log_bytes_total: _, ...rest }: Record<string, number>) => rest;
    expect(withoutBytes(console.counts())).toEqual(withoutBytes(json.counts()));
    expect(json.counts()).toMatchObject({
      'svc_log_persistence_errors_total{operation="PersistenceUpdateShard"}': 1,
      'r{domain="orders",error="tab\\t\\"quote\\""}': 1,
    });
  });
});
