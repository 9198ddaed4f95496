import { createHash, createHmac } from 'node:crypto';

/** A request as the server got it: path and query as in the request line, header names in lower case. */
interface SignedRequest {
  method: string;
  target: string;
  headers: Readonly<Record<string, string>>;
}

export interface Keys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** UriEncode of the documentation: encodes every byte but A-Z a-z 0-9 - . _ ~ and, with `keepsSlash`, the slash. */
function uriEncoded(text: string, keepsSlash: boolean): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      const sign = String.fromCharCode(byte);
      if (/[A-Za-z0-9\-._~]/.test(sign) || (keepsSlash && sign === '/')) return sign;
      return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    })
    .join('');
}

function canonicalQuery(query: string): string {
  const pairs = query === '' ? [] : query.split('&');
  return pairs
    .map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [name, value.join('=')].map((part) => uriEncoded(decodeURIComponent(part), false)).join('=');
    })
    .sort()
    .join('&');
}

/**
 * The signature that a request must have, according to the steps of "Authenticating Requests: Using the Authorization Header (AWS
 * Signature Version 4)" in the Amazon S3 API reference: canonical request, string to sign, signing key.
 */
export function signatureOf(
  { method, target, headers }: SignedRequest,
  signedHeaders: readonly string[],
  scope: string,
  secretAccessKey: string,
): string {
  const [path = '', query = ''] = target.split('?');
  const canonicalHeaders = signedHeaders.map(
    (name) => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}\n`,
  );
  const canonicalRequest = [
    method,
    uriEncoded(decodeURIComponent(path), true),
    canonicalQuery(query),
    canonicalHeaders.join(''),
    signedHeaders.join(';'),
    headers['x-amz-content-sha256'],
  ].join('\n');
  const stringToSign = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonicalRequest)].join(
    '\n',
  );
  const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  return hmac(key, stringToSign).toString('hex');
}

/** The code of S3's refusal; undefined for a request that is signed correctly. */
export function refusalCode(
  request: SignedRequest,
  { keys, region, nowMs }: { keys: Keys; region: string; nowMs: number },
): string | undefined {
  const { headers } = request;
  const authorization = headers.authorization;
  if (authorization === undefined) return 'AccessDenied';
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/((\d{8})\/([^/]+)\/s3\/aws4_request), ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/;
  const [, accessKey, scope, day, signedRegion, names, signature] = form.exec(authorization) ?? [];
  if (!scope || !names) return 'AuthorizationHeaderMalformed';
  if (accessKey !== keys.accessKeyId) return 'InvalidAccessKeyId';
  if (signedRegion !== region) return 'AuthorizationHeaderMalformed';
  if (headers['x-amz-security-token'] !== keys.sessionToken) return 'InvalidToken';
  const date = headers['x-amz-date'] ?? '';
  const sentMs = Date.parse(date.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));
  if (Number.isNaN(sentMs) || !date.startsWith(day!)) return 'AccessDenied';
  if (Math.abs(sentMs - nowMs) > 15 * 60e3) return 'RequestTimeTooSkewed';
  const signedHeaders = names.split(';');
  const needed = ['host', ...Object.keys(headers).filter((name) => name.startsWith('x-amz-'))];
  if (needed.some((name) => !signedHeaders.includes(name))) return 'AccessDenied';
  if (request.method === 'GET' && headers['x-amz-content-sha256'] !== sha256(''))
    return 'XAmzContentSHA256Mismatch';
  return signature === signatureOf(request, signedHeaders, scope, keys.secretAccessKey)
    ? undefined
    : 'SignatureDoesNotMatch';
}
