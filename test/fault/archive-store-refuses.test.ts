import { afterEach, beforeEach, expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import {
  environmentOf,
  errorDocument,
  keys,
  type ObjectStoreServer,
  openArchive,
  openObjectStore,
} from '../object-store.ts';

let store: ObjectStoreServer;
const clock = manualClock();
beforeEach(async () => {
  store = await openObjectStore({ clock });
});
afterEach(() => store.close());

const runCheck = async (more: Partial<Parameters<typeof openArchive>[0]> = {}) => {
  const archive = await openArchive({ uri: 's3://archive/h/', endpoint: store.url, clock, ...more });
  return archive.check();
};

test('a bucket that is missing', async () => {
  expect(await runCheck({ uri: 's3://elsewhere/h/' })).toMatchObject({
    reason: 'not_found',
    msg: 'the object store refused: status 404, NoSuchBucket, no',
  });
});

test('a wrong secret', async () => {
  const finding = await runCheck({ env: environmentOf({ ...keys, secretAccessKey: 'hunter2' }) });
  expect(finding).toMatchObject({
    reason: 'denied',
    msg: expect.stringContaining('the secret key does not belong to the access key'),
  });
  expect(JSON.stringify(finding)).not.toContain('hunter2');
});

test('a key that is not known', async () => {
  const finding = await runCheck({ env: environmentOf({ ...keys, accessKeyId: 'NOBODY' }) });
  expect(finding.reason).toBe('credentials');
});

test('half a pair of keys: nothing is asked', async () => {
  const finding = await runCheck({ env: { HOME: '/nowhere', AWS_ACCESS_KEY_ID: 'AKID' } });
  expect(finding).toMatchObject({
    reason: 'credentials',
    msg: expect.stringContaining('AWS_ACCESS_KEY_ID is set'),
  });
  expect(store.asked).toEqual([]);
});

test.each([16, -16])('a clock that is wrong by %i minutes', async (minutes) => {
  const wrong = manualClock(clock.nowMs() + minutes * 60e3);
  expect(await runCheck({ clock: wrong })).toMatchObject({
    reason: 'clock_skew',
    msg: expect.stringContaining('the clock of this machine or of the store is wrong'),
  });
});

test.each([
  [
    'rights that are missing',
    403,
    errorDocument('AccessDenied', 'no\n\n rights'),
    'denied',
    'AccessDenied, no rights',
  ],
  ['a token that has ended', 400, errorDocument('ExpiredToken'), 'credentials', 'ExpiredToken'],
  ['a proxy that forbids', 403, '<html><body>Forbidden<br></body></html>', 'denied', 'status 403'],
  ['a proxy that wants to know who', 401, '', 'credentials', 'status 401'],
  ['too many requests', 503, errorDocument('SlowDown'), 'http_status', 'status 503, SlowDown, no'],
  ['a server error', 500, 'oops', 'http_status', 'status 500'],
  ['an unknown page', 404, 'not found', 'http_status', 'status 404'],
  [
    'an inherited property as code',
    400,
    errorDocument('constructor'),
    'http_status',
    'status 400, constructor',
  ],
  ['no content', 204, '', 'http_status', 'status 204'],
] as const)('%s', async (_, status, body, reason, msg) => {
  store.answer((_, response) => response.writeHead(status).end(body || undefined));
  expect(await runCheck()).toMatchObject({ reason, msg: expect.stringContaining(msg) });
});

test('a redirect is told, not followed', async () => {
  const other = await openObjectStore({ clock });
  store.answer((_, response) => response.writeHead(307, { location: `${other.url}/archive` }).end());
  const finding = await runCheck();
  await other.close();
  expect(finding).toMatchObject({
    reason: 'http_status',
    msg: `the object store refused: status 307; it redirects to ${other.url}/archive`,
  });
  expect(other.asked).toEqual([]);
});

test('a bucket of another region', async () => {
  const headers = { 'x-amz-bucket-region': 'ap-south-1' };
  store.answer((_, response) => response.writeHead(301, headers).end(errorDocument('PermanentRedirect')));
  expect(await runCheck()).toMatchObject({
    reason: 'http_status',
    msg: expect.stringContaining('the bucket is in region ap-south-1'),
  });
});

test('a refusal in the middle of a list keeps what was seen', async () => {
  await store.close();
  store = await openObjectStore({ clock, pageSize: 1 });
  store.objects.set('h/a', '2026-01-03T00:00:00.000Z');
  store.objects.set('h/b', '2026-01-02T00:00:00.000Z');
  const archive = await openArchive({ uri: 's3://archive/h/', endpoint: store.url, clock });
  const first = await archive.check();
  expect(first.gauges).toHaveLength(1);
  store.answer((request, response) => {
    if (request.url?.includes('continuation-token')) response.writeHead(500).end();
    else {
      response.end(
        '<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>' +
          '<Contents><Key>h/a</Key><LastModified>2026-01-03T00:00:00.000Z</LastModified><Size>1</Size></Contents>' +
          '</ListBucketResult>',
      );
    }
  });
  const second = await archive.check(undefined, first.remember);
  expect(second).toMatchObject({ reason: 'http_status', remember: { archive: { after: 'h/a' } } });
});
