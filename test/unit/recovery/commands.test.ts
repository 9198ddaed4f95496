import { describe, expect, test } from 'vitest';
import { commandsOf, type Subject, shellText } from '../../../src/agent/recovery/commands.ts';

type Config = Parameters<typeof commandsOf>[1];

const commands = (
  subject: Subject,
  {
    describe: command,
    recovery = {},
    hasGroup = true,
  }: { describe?: readonly string[]; recovery?: Partial<Config['recovery']>; hasGroup?: boolean } = {},
) =>
  commandsOf(subject, {
    recovery: { commands: {}, ...recovery },
    domains: command && { describe: { command } },
    stores: [
      { name: 'far', address: 'db2:5432', databases: { persistence: 'other' } },
      { name: 'main', address: 'db1:5432', databases: { persistence: 'svc' } },
    ],
    clusterGroupMetadata: hasGroup
      ? {
          currentClusterName: 'dc1',
          clusters: [
            { name: 'dc1', rpcAddress: 'front1:7833' },
            { name: 'dc2', rpcAddress: 'front2:7833' },
            { name: 'dc3' },
          ],
        }
      : undefined,
  } as never);

describe('the client is what the description command has before its own words', () => {
  test.each([
    ['cli domain describe {domain}', 'cli'],
    ['cli --env prod admin domain describe {domain}', 'cli --env prod'],
    ['cli --domain {domain} domain describe', 'cli'],
    ['cli -d {domain} --tls domain describe', 'cli --tls'],
    ['cli --env prod -d {domain} --tls domain describe', 'cli --env prod --tls'],
    ['cli --do {domain} --tls domain describe', 'cli --tls'],
    ['cli --domain={domain} --tls domain describe', 'cli --tls'],
    ['cli --address {address} domain describe', 'cli --address front1:7833'],
    // Global options after it may be anything.
    ['cli domain describe --address {address}', undefined],
    ['cli domain describe --cluster {cluster}', undefined],
    ['cli domain list', undefined],
    ['cli workflow describe', undefined],
    ['domain describe', undefined],
    ['cli describe domain', undefined],
  ])('%s', (words, client) => {
    const found = commands({}, { describe: words.split(' ') }).client('x');
    expect(found).toEqual(client && [...client.split(' '), 'x']);
  });

  test('an address is needed only where the client names one', () => {
    const client = (words: string, subject: Subject, hasGroup: boolean) =>
      commands(subject, { describe: words.split(' '), hasGroup }).client('x');
    const [plain, addressed] = ['cli domain describe', 'cli --address {address} domain describe'] as const;
    expect([client(plain, {}, false), client(addressed, {}, false)]).toEqual([['cli', 'x'], undefined]);
    expect(client(plain, { to: 'dc9' }, true)).toEqual(['cli', 'x']);
    expect(client(addressed, { to: 'dc9' }, true)).toBeUndefined();
  });

  test('without a description command there is none', () => expect(commands({}).client()).toBeUndefined());
});

test.each([
  ['of this configuration', {}, ['cli', 'front1:7833', 'dc1', 'list']],
  ['that becomes active', { to: 'dc2' }, ['cli', 'front2:7833', 'dc2', 'list']],
  ['without an address', { to: 'dc3' }, undefined],
])('the client of the configuration asks the cluster %s', (_, subject, words) => {
  const recovery = { client: ['cli', '{address}', '{cluster}'] };
  expect(commands(subject, { recovery, describe: ['other', 'domain', 'describe'] }).client('list')).toEqual(
    words,
  );
});

test('placeholders stand for the subject; a command that lacks a value is done by hand', () => {
  // A variable of a shell is no placeholder.
  const dollar = '$' + '{file}';
  const restore = ['load', '{store}', '{address}', '{database}', '{file}', '-u{until}', '{any}', dollar];
  const recovery = { commands: { restore, standbyProbe: ['see', '{cluster}', '{domain}'] } } as never;
  const subject = { store: 'main', database: 'persistence', backup: '/b.sql' } as const;
  const named = (over: Subject) => commands({ ...subject, ...over }, { recovery }).named('restore');
  const rest = ['{any}', dollar];
  expect(named({})).toEqual(['load', 'main', 'db1:5432', 'svc', '/b.sql', '-u', ...rest]);
  expect(named({ until: '2026-01-01Z' })).toEqual([
    'load',
    'main',
    'db1:5432',
    'svc',
    '/b.sql',
    '-u2026-01-01Z',
    ...rest,
  ]);
  expect(named({ backup: undefined })).toBeUndefined();
  expect(named({ store: 'gone' })).toBeUndefined();
  const failover = commands({ to: 'dc2', domain: 'orders' }, { recovery });
  expect(failover.named('standbyProbe', { cluster: 'dc1' })).toEqual(['see', 'dc1', 'orders']);
  expect(failover.named('standbyProbe')).toEqual(['see', 'dc2', 'orders']);
  expect(failover.named('deploy')).toBeUndefined();
});

test.each([
  [['cp', '-a', '/a/b_c-1.2:3,4=5+6%7@8', 'x'], 'cp -a /a/b_c-1.2:3,4=5+6%7@8 x'],
  [['echo', "it's", '', '$HOME', 'a b'], `echo 'it'\\''s' '' '$HOME' 'a b'`],
])('a shell reads the text of %j as these words', (words, text) => expect(shellText(words)).toBe(text));
