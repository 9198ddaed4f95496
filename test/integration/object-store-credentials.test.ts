import { mkdirSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { createCredentialSource } from '../../src/probes/object-store/object-store.ts';
import { newFolder } from '../folder.ts';
import { useEnvironment } from '../object-store.ts';
import { serving } from '../serving.ts';

const file = `[default]
aws_access_key_id = AKID
aws_secret_access_key=s=cr/et+
[ops]
aws_access_key_id = OPS
aws_secret_access_key = other
aws_session_token = token
[half]
aws_access_key_id = HALF
`;
const pair = { AWS_ACCESS_KEY_ID: 'ID', AWS_SECRET_ACCESS_KEY: 'hunter2' };
const never = new AbortController().signal;

let directory: string;
beforeEach(() => {
  directory = newFolder();
  mkdirSync(join(directory, '.aws'));
  writeFileSync(join(directory, 'keys'), file);
});

const read = (env: Readonly<Record<string, string>>) => {
  useEnvironment({ HOME: directory, ...env });
  return createCredentialSource('eu-west-1').read(never);
};
const shared = () => ({ AWS_SHARED_CREDENTIALS_FILE: join(directory, 'keys') });

/** A server on loopback that answers each request with `answer`. */
async function serve(answer: (request: IncomingMessage, body: string) => [string, string] | undefined) {
  const port = await serving((request, response) => {
    let body = '';
    request.on('data', (piece) => {
      body += piece;
    });
    request.on('end', () => {
      const [type, text] = answer(request, body) ?? [];
      if (text === undefined) response.writeHead(404).end();
      else response.writeHead(200, { 'content-type': type }).end(text);
    });
  });
  return `http://127.0.0.1:${port}`;
}

describe('credentials', () => {
  test('of the environment', async () => {
    expect(await read(pair)).toEqual({ accessKeyId: 'ID', secretAccessKey: 'hunter2' });
    expect(await read({ ...pair, AWS_SESSION_TOKEN: 'T' })).toMatchObject({ sessionToken: 'T' });
  });

  test('of the default profile, and of another one', async () => {
    expect(await read(shared())).toEqual({ accessKeyId: 'AKID', secretAccessKey: 's=cr/et+' });
    expect(await read({ ...shared(), AWS_PROFILE: 'ops' })).toEqual({
      accessKeyId: 'OPS',
      secretAccessKey: 'other',
      sessionToken: 'token',
    });
  });

  test('of a file that changed are read again', async () => {
    writeFileSync(join(directory, '.aws', 'credentials'), file);
    useEnvironment({ HOME: directory });
    const source = createCredentialSource('eu-west-1');
    expect(await source.read(never)).toMatchObject({ accessKeyId: 'AKID' });
    writeFileSync(join(directory, '.aws', 'credentials'), file.replace('AKID', 'ROTATED'));
    expect(await source.read(never)).toMatchObject({ accessKeyId: 'ROTATED' });
  });

  test('of a web identity, kept until they expire', async () => {
    const asked: string[] = [];
    const expiration = new Date(Date.now() + 3_600_000).toISOString();
    const sts = await serve((_, body) => {
      asked.push(body);
      const keys = `<AccessKeyId>WEB</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${expiration}</Expiration>`;
      return [
        'text/xml',
        `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>${keys}</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
      ];
    });
    writeFileSync(join(directory, 'token'), 'the.web.identity');
    useEnvironment({
      HOME: directory,
      AWS_WEB_IDENTITY_TOKEN_FILE: join(directory, 'token'),
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/archive',
      AWS_ENDPOINT_URL_STS: sts,
    });
    const source = createCredentialSource('eu-west-1');
    const expected = { accessKeyId: 'WEB', secretAccessKey: 's', sessionToken: 't' };
    expect(await source.read(never)).toEqual(expected);
    expect(await source.read(never)).toEqual(expected);
    expect(asked).toHaveLength(1);
    expect(new URLSearchParams(asked[0]).get('WebIdentityToken')).toBe('the.web.identity');
  });

  test('of the instance’s metadata', async () => {
    const metadata = await serve(({ method, url = '' }) => {
      if (method === 'PUT' && url === '/latest/api/token') return ['text/plain', 'session'];
      if (url.endsWith('/security-credentials/')) return ['text/plain', 'role'];
      if (!url.endsWith('/security-credentials/role')) return undefined;
      const keys = {
        Code: 'Success',
        AccessKeyId: 'IMDS',
        SecretAccessKey: 's',
        Token: 't',
        Expiration: new Date(Date.now() + 3_600_000).toISOString(),
      };
      return ['application/json', JSON.stringify(keys)];
    });
    const env = { AWS_EC2_METADATA_DISABLED: '', AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata };
    expect(await read(env)).toEqual({ accessKeyId: 'IMDS', secretAccessKey: 's', sessionToken: 't' });
  });

  test('that are nowhere are none', async () => {
    expect(await read({})).toBeUndefined();
    expect(await read({ AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' })).toBeUndefined();
  });

  test.each([
    ['half a pair', { AWS_ACCESS_KEY_ID: 'ID' }, 'AWS_ACCESS_KEY_ID is set'],
    ['the other half', { AWS_SECRET_ACCESS_KEY: 'hunter2' }, 'AWS_SECRET_ACCESS_KEY is set'],
    ['half a profile', { AWS_PROFILE: 'half' }, 'AWS_PROFILE'],
    ['a profile that does not exist', { AWS_PROFILE: 'dev' }, 'AWS_PROFILE'],
    [
      'a named file that does not exist',
      { AWS_SHARED_CREDENTIALS_FILE: '/none' },
      'AWS_SHARED_CREDENTIALS_FILE',
    ],
    [
      'a web identity without its token',
      { AWS_WEB_IDENTITY_TOKEN_FILE: '/none', AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/archive' },
      'AWS_WEB_IDENTITY_TOKEN_FILE is set',
    ],
  ])('%s is a fault', async (_, env, message) => {
    if (!('AWS_PROFILE' in env || 'AWS_SHARED_CREDENTIALS_FILE' in env)) {
      // The chain continues with the shared file, as every tool that uses it does.
      await expect(read({ ...shared(), ...env })).resolves.toMatchObject({ accessKeyId: 'AKID' });
    }
    const alone = read({ ...('AWS_PROFILE' in env ? shared() : {}), ...env });
    await expect(alone).rejects.toMatchObject({
      reason: 'credentials',
      message: expect.stringContaining(message),
    });
    await expect(alone).rejects.not.toMatchObject({ message: expect.stringContaining('hunter2') });
  });

  test('a token service that hangs ends with the signal', async () => {
    let onAsked = () => {};
    const asked = new Promise<void>((resolve) => (onAsked = resolve));
    const port = await serving(() => onAsked());
    writeFileSync(join(directory, 'token'), 'the.web.identity');
    useEnvironment({
      HOME: directory,
      AWS_WEB_IDENTITY_TOKEN_FILE: join(directory, 'token'),
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/archive',
      AWS_ENDPOINT_URL_STS: `http://127.0.0.1:${port}`,
    });
    const stop = new AbortController();
    const reading = createCredentialSource('eu-west-1').read(stop.signal);
    await asked;
    stop.abort();
    await expect(reading).rejects.toMatchObject({ reason: 'too_slow' });
  });
});
