import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { createReadSecret } from '../../../src/agent/read-secret.ts';
import { errorText } from '../../../src/core/errors.ts';
import { agentFile } from './agent-file.ts';

/** Blocks that hold a secret; SECRET is at each place where somebody may write it by mistake. */
const secret = 'hunter2Zx81';
const holders: Record<string, string> = {
  'a listener': 'metrics: {pullmetrics: {listenAddress: "127.0.0.1:9464", auth: HERE}}',
  'the admin listener': 'admin: {auth: HERE}',
  'a user of a listener': 'admin: {auth: {basicAuthUsers: {a: HERE}}}',
  'a bearer': 'admin: {auth: {bearer: HERE}}',
  'a user': 'admin: {auth: {basic: HERE}}',
  'the password of a user': 'admin: {auth: {basic: {username: a, password: HERE}}}',
  'a platform': 'metrics: {hostedmetrics: {protocol: otlp, endpoint: "https://a.example/", auth: HERE}}',
  'headers of a platform':
    'metrics: {hostedmetrics: {protocol: otlp, endpoint: "https://a.example/", headers: {x-key: HERE}}}',
  'a scrape': 'services: {frontend: {scrape: {url: "http://127.0.0.1:1/", auth: {basic: HERE}}}}',
  'a health check': 'services: {frontend: {health: {url: "http://127.0.0.1:1/", auth: HERE}}}',
  'a store': 'stores: [{name: a, kind: postgres, address: "127.0.0.1:5432", user: u, password: HERE}]',
  'the credentials of a store':
    'stores: [{name: a, kind: postgres, address: "127.0.0.1:5432", credentials: HERE}]',
  'the heartbeat of a backup':
    'stores: [{name: a, kind: postgres, address: "127.0.0.1:5432"}]\nbackups: [{name: b, store: a, type: full, source: {heartbeat: HERE}}]',
  'the token of a backup':
    'stores: [{name: a, kind: postgres, address: "127.0.0.1:5432"}]\nbackups: [{name: b, store: a, type: full, source: {heartbeat: {token: HERE}}}]',
};

const mistakes: Record<string, string> = {
  'as a text': secret,
  'as user and password': `u:${secret}`,
  'as a list': `[${secret}]`,
  'as a key': `{${secret}: ~}`,
  'as a key with a value': `{${secret}: 1}`,
  'as the name of a variable': `{env: ${secret}}`,
  'as the name of a variable below': `{bearer: {env: ${secret}}}`,
  'as the name of a file': `{file: ${secret}}`,
  'with a wrong type': `{bearer: [${secret}]}`,
  'with a variable': `"${secret}\${NOT_SET}"`,
};

describe.each(Object.entries(holders))('in %s', (_, holder) => {
  test.each(Object.entries(mistakes))('%s it is not shown', async (__, mistake) => {
    const text = `roles: []\n${holder.replace('HERE', mistake)}\n`;
    const { config: ___, ...shown } = await loadConfig({ file: agentFile(text), env: {}, cwd: '/' });
    expect(JSON.stringify({ ...shown, watched: [] })).not.toContain(secret);
  });
});

test.each([
  ['metrics: {pullmetrics: {listenAddress: "127.0.0.1:9464", HERE: 1}}'],
  ['admin: {HERE: 1}\n'],
  ['stores: [{name: a, kind: postgres, address: "127.0.0.1:5432", HERE: 1}]'],
  ['services: {frontend: {scrape: {url: "http://127.0.0.1:1/", HERE: {a: 1}}}}'],
])('an unknown key beside one is not shown: %s', async (holder) => {
  const { faults } = await loadConfig({ file: agentFile(holder.replace('HERE', secret)), env: {}, cwd: '/' });
  expect(JSON.stringify(faults)).not.toContain(secret);
  const misspelt = await loadConfig({ file: agentFile(holder.replace('HERE', 'auht')), env: {}, cwd: '/' });
  if (!holder.startsWith('stores')) expect(JSON.stringify(misspelt.faults)).toContain('auht');
});

test.each([[{ env: secret }], [{ file: secret }], [{ file: `secrets/${secret}` }]])(
  'at run time it is not shown either: %j',
  async (place) => {
    const thrown = await createReadSecret({})(place).catch((error: unknown) => error as Error);
    const texts = [];
    for (let error: unknown = thrown; error instanceof Error; error = error.cause)
      texts.push(errorText(error));
    expect(texts.join()).toMatch(/the (environment variable|file) /);
    expect(texts.join()).not.toContain(secret);
  },
);

test('names that are names are shown', async () => {
  const of = (place: Parameters<ReturnType<typeof createReadSecret>>[0]) =>
    createReadSecret({})(place).catch((error: unknown) => errorText(error));
  expect(await of({ env: 'SVC_AGENT_DB_PASSWORD' })).toContain('SVC_AGENT_DB_PASSWORD');
  expect(await of({ file: '/run/secrets/db-password' })).toContain('/run/secrets/db-password');
});
