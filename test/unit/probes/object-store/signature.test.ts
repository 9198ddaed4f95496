import { describe, expect, test } from 'vitest';
import { refusalCode, signatureOf } from '../../../sigv4.ts';

/** The examples in the Amazon S3 API reference. */
const secret = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const scope = '20130524/us-east-1/s3/aws4_request';
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const headers = {
  host: 'examplebucket.s3.amazonaws.com',
  'x-amz-content-sha256': emptyHash,
  'x-amz-date': '20130524T000000Z',
};
const signed = ['host', 'x-amz-content-sha256', 'x-amz-date'];
const listSignature = '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7';

describe('what the test server takes for a signature is what the documentation says', () => {
  test.each([
    [
      'GET object',
      '/test.txt',
      { range: 'bytes=0-9' },
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    ],
    [
      'GET bucket lifecycle',
      '/?lifecycle',
      {},
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
    ],
    ['GET bucket (list objects)', '/?max-keys=2&prefix=J', {}, listSignature],
  ])('%s', (_, target, more, expected) => {
    const request = { method: 'GET', target, headers: { ...headers, ...more } };
    const names = [...signed, ...Object.keys(more)].sort();
    expect(signatureOf(request, names, scope, secret)).toBe(expected);
  });
});

describe('and it refuses', () => {
  const authorization = `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/${scope}, SignedHeaders=${signed.join(';')}, Signature=${listSignature}`;
  const good = { method: 'GET', target: '/?max-keys=2&prefix=J', headers: { ...headers, authorization } };
  const known = {
    keys: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: secret },
    region: 'us-east-1',
    nowMs: Date.UTC(2013, 4, 24),
  };
  const withHeaders = (more: Record<string, string>) => ({ ...good, headers: { ...good.headers, ...more } });

  test('nothing of the documented request', () => expect(refusalCode(good, known)).toBeUndefined());
  test.each([
    ['another query', { ...good, target: '/?max-keys=2&prefix=K' }, 'SignatureDoesNotMatch'],
    ['another method', { ...good, method: 'PUT' }, 'SignatureDoesNotMatch'],
    ['another host', withHeaders({ host: 'other' }), 'SignatureDoesNotMatch'],
    ['no signature', withHeaders({ authorization: '' }), 'AuthorizationHeaderMalformed'],
    ['a header that is not signed', withHeaders({ 'x-amz-acl': 'private' }), 'AccessDenied'],
    ['a token that is not known', withHeaders({ 'x-amz-security-token': 't' }), 'InvalidToken'],
  ])('%s', (_, request, code) => expect(refusalCode(request, known)).toBe(code));
  test('an old one', () =>
    expect(refusalCode(good, { ...known, nowMs: known.nowMs + 16 * 60e3 })).toBe('RequestTimeTooSkewed'));
});
