import { describe, expect, test } from 'vitest';
import { readCredentials } from '../../../../src/probes/object-store/credentials.ts';
import { secretsOf } from '../../../object-store.ts';

const file = `[default]
aws_access_key_id = AKID
  aws_secret_access_key=s=cr/et+
# [ops]

[ ops ]
AWS_ACCESS_KEY_ID = OPS\r
aws_secret_access_key = other
aws_session_token = token
[half]
aws_access_key_id = HALF
`;
const shared = { AWS_SHARED_CREDENTIALS_FILE: '/etc/keys', HOME: '/home/svc' };
const files = { '/etc/keys': file };
const pair = { AWS_ACCESS_KEY_ID: 'ID', AWS_SECRET_ACCESS_KEY: 'hunter2' };

describe('credentials', () => {
  test.each([
    ['of the environment', { ...shared, ...pair }, { accessKeyId: 'ID', secretAccessKey: 'hunter2' }],
    [
      'with a token',
      { ...pair, AWS_SESSION_TOKEN: 'T' },
      { accessKeyId: 'ID', secretAccessKey: 'hunter2', sessionToken: 'T' },
    ],
    ['of the default profile', shared, { accessKeyId: 'AKID', secretAccessKey: 's=cr/et+' }],
    [
      'of another profile',
      { ...shared, AWS_PROFILE: 'ops' },
      { accessKeyId: 'OPS', secretAccessKey: 'other', sessionToken: 'token' },
    ],
    ['that are nowhere', { HOME: '/home/svc' }, undefined],
    ['that are empty', { HOME: '/home/svc', AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' }, undefined],
  ])('%s', async (_, env, expected) =>
    expect(await readCredentials(secretsOf(env, files))).toEqual(expected),
  );

  test('of the usual file', async () => {
    const secrets = secretsOf({ HOME: '/home/svc' }, { '/home/svc/.aws/credentials': file });
    expect(await readCredentials(secrets)).toMatchObject({ accessKeyId: 'AKID' });
  });

  test.each([
    ['half a pair', { AWS_ACCESS_KEY_ID: 'ID' }, 'AWS_SECRET_ACCESS_KEY is not set'],
    ['the other half', { AWS_SECRET_ACCESS_KEY: 'hunter2' }, 'AWS_ACCESS_KEY_ID is not set'],
    ['half a profile', { ...shared, AWS_PROFILE: 'half' }, '/etc/keys: aws_secret_access_key is not set'],
    ['a profile that is not there', { ...shared, AWS_PROFILE: 'dev' }, '/etc/keys has no profile dev'],
    [
      'a named file that is not there',
      { AWS_SHARED_CREDENTIALS_FILE: '/etc/none' },
      'AWS_SHARED_CREDENTIALS_FILE: ',
    ],
  ])('%s is a fault', async (_, env, message) => {
    const reading = readCredentials(secretsOf(env, files));
    await expect(reading).rejects.toMatchObject({
      reason: 'credentials',
      message: expect.stringContaining(message),
    });
    await expect(reading).rejects.not.toMatchObject({ message: expect.stringContaining('hunter2') });
  });
});
