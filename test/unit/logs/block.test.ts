import { expect, test } from 'vitest';
import { logsBlock } from '../../../src/sources/logs/block.ts';

const faultsOf = (block: unknown): string[] =>
  logsBlock()
    .safeParse(block)
    .error?.issues.map(({ message }) => message) ?? [];
const rule = { name: 'calls_total', type: 'counter' };

test('what is not set has the documented default', () => {
  expect(logsBlock().parse({ paths: ['-'] })).toEqual({
    paths: ['-'],
    exclude: [],
    encoding: 'auto',
    container: 'auto',
    levelKey: 'level',
    roleField: 'service',
    startAt: 'end',
    rules: [],
  });
});

test('a rule has its idle time in milliseconds, or none', () => {
  const { rules } = logsBlock().parse({ paths: ['/a.log'], rules: [{ ...rule, expire: '1m30s' }, rule] });
  expect(rules).toStrictEqual([{ ...rule, expireMs: 90_000 }, rule]);
});

test.each([
  ['null', null],
  ['a text', 'x'],
  ['labels that are null', { ...rule, labels: null }],
  ['labels that are no texts', { ...rule, labels: { shard: 7 } }],
])('a rule that is %s is refused, and nothing is thrown', (_, bad) => {
  expect(faultsOf({ paths: ['/a.log'], rules: [bad] })).toHaveLength(1);
});

const longest = `/${'a'.repeat(4095)}`;
test.each([
  ['the longest path', [longest], []],
  ['a path without text', [''], [expect.stringContaining('Too small')]],
  ['a longer path', [`${longest}a`], ['longer than a path can be; use at most 4096 characters']],
  ['no path', [], [expect.stringContaining('Too small')]],
  ['standard input beside files', ['-', '/a.log'], ['standard input beside files; use - alone']],
  ['a directory before **', ['/var/log/**/app.log'], []],
  ['a wildcard and a directory before **', ['/*/log/**'], []],
  ['a directory after **', ['/**/log/app.log'], [expect.stringMatching(/^the whole file system; /)]],
  ['a class that cannot be', ['/[z-a].log'], [expect.stringMatching(/^path pattern cannot be compiled: /)]],
])('%s', (_, paths, faults) => {
  expect(faultsOf({ paths })).toEqual(faults);
});

test('files may be left out wherever they are', () => {
  expect(faultsOf({ paths: ['/a.log'], exclude: ['/**/*.gz', '*.old'] })).toEqual([]);
});
