import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ObjectStoreServer, openArchive, openObjectStore } from '../object-store.ts';

let store: ObjectStoreServer;
beforeEach(async () => {
  store = await openObjectStore();
});
afterEach(() => store.close());

const runCheck = async () => (await openArchive({ uri: 's3://archive/h/', endpoint: store.url })).check();

test.each([
  ['HTML', '<!doctype html><html><body>Sign in</body></html>', 'not XML at character 0'],
  ['JSON', '{"ok":true}', 'not a single element'],
  ['nothing', '', 'not a single element'],
  [
    'half a list',
    '<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a',
    '<Key> is not closed',
  ],
  ['bytes', Buffer.from([0, 255, 254, 1]), 'not UTF-8'],
  ['entities that grow', '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><a>&c;</a>', 'not XML'],
  ['an error with status 200', '<Error><Code>InternalError</Code></Error>', '<Error> instead of'],
] as const)('%s', async (_, body, msg) => {
  store.answer((_, response) => response.end(body));
  expect(await runCheck()).toMatchObject({ reason: 'invalid_answer', msg: expect.stringContaining(msg) });
});

test('a list that never ends', async () => {
  store.answer((_, response) =>
    response.end(
      '<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>',
    ),
  );
  expect(await runCheck()).toMatchObject({
    reason: 'invalid_answer',
    msg: 'the object store continues with the page just requested',
  });
  expect(store.asked).toHaveLength(2);
});

test.each(['<ListBucketResult>', '<', '<a ', ' '])('100 MB of %j are not taken', async (piece) => {
  let written = 0;
  store.answer((_, response) => {
    const chunk = Buffer.from(piece.repeat((1 << 16) / piece.length));
    const pour = (): void => {
      while (written < 100e6 && !response.destroyed) {
        written += chunk.length;
        if (!response.write(chunk)) return;
      }
      response.end();
    };
    response.on('drain', pour);
    pour();
  });
  const finding = await runCheck();
  expect(finding).toMatchObject({ reason: 'too_large', msg: 'the response has more than 8388608 bytes' });
  expect(written).toBeLessThan(64e6);
});

test('an answer that ends too early', async () => {
  store.answer((_, response) => {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('<ListBucketResult>', () => response.destroy());
  });
  expect((await runCheck()).reason).toBe('reset');
});

test('no HTTP', async () => {
  store.answer((request) => {
    request.socket.end('SSH-2.0-OpenSSH_9.2\r\n');
  });
  expect(await runCheck()).toMatchObject({
    reason: 'invalid_answer',
    msg: expect.stringContaining('the response is not HTTP'),
  });
});
