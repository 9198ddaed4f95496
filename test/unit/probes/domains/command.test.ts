import { expect, test } from 'vitest';
import { commandFor, isPerCluster } from '../../../../src/probes/domains/description.ts';

const dc1 = { name: 'dc1', rpcAddress: '10.0.0.1:7833' };

test.each<[string[], string, typeof dc1 | undefined, string[]]>([
  [
    ['cli', '--do', '{domain}', 'domain', 'describe'],
    'orders',
    undefined,
    ['cli', '--do', 'orders', 'domain', 'describe'],
  ],
  [['cli', '--do={domain}/{domain}'], 'a b', undefined, ['cli', '--do=a b/a b']],
  [['{domain}', 'x'], 'orders', undefined, ['{domain}', 'x']],
  [['cli', '{address}', '{cluster}', '{other}'], 'orders', dc1, ['cli', '10.0.0.1:7833', 'dc1', '{other}']],
  [['cli', '{address}', '{cluster}'], 'orders', undefined, ['cli', '{address}', '{cluster}']],
  [['cli', '{domain}'], '{cluster}', dc1, ['cli', '{cluster}']],
  [['cli', '{domain}'], "$& $1 $'", undefined, ['cli', "$& $1 $'"]],
])('%j of %s', (command, domain, through, args) => {
  expect(commandFor(command, domain, through)).toEqual(args);
});

test('each cluster is asked where an argument names it', () => {
  expect(isPerCluster(['cli', '--address', '{address}'])).toBe(true);
  expect(isPerCluster(['cli', '--to={cluster}'])).toBe(true);
  expect(isPerCluster(['{cluster}', '{domain}'])).toBe(false);
});
