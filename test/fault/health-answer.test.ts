import { expect, test } from 'vitest';
import { checkHealth } from '../health.ts';
import { servingBare } from '../serving.ts';

/** A check of a server that answers with exactly these bytes. */
async function runCheck(answer: string, end = true) {
  const port = await servingBare((socket) =>
    socket.once('data', () => (end ? socket.end(answer) : socket.write(answer))),
  );
  return checkHealth({ url: `http://127.0.0.1:${port}/health` });
}
const http = (status: string, body: string, headers = 'content-type: application/json\r\n') =>
  `HTTP/1.1 ${status}\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

test.each([
  ['200 with ok: false', '200 OK', '{"ok":false,"msg":"no"}', 'not_ok', 'no'],
  [
    '200 with ok: false while it warms up',
    '200 OK',
    '{"ok":false,"msg":"WarmingUp"}',
    'warming_up',
    'WarmingUp',
  ],
  [
    '503 with valid JSON',
    '503 Unavailable',
    '{"ok":false,"msg":"not in ring"}',
    'not_in_ring',
    'not in ring',
  ],
  ['proto3 JSON without ok', '200 OK', '{"message":"ShuttingDown"}', 'shutting_down', 'ShuttingDown'],
  [
    '503 that says ok: true',
    '503 Unavailable',
    '{"ok":true,"msg":"OK"}',
    'http_status',
    'status 503, although it says ok: OK',
  ],
  [
    'HTML with a good status',
    '200 OK',
    '<!doctype html>\n<title>Sign in</title>',
    'invalid_answer',
    'not a JSON object with ok and msg: text/html, "<!doctype html> <title>Sign in</title>"',
    'content-type: text/html\r\n',
  ],
  [
    'HTML with a bad status',
    '502 Bad Gateway',
    '<h1>502</h1>',
    'http_status',
    'status 502: text/html, "<h1>502</h1>"',
    'content-type: text/html\r\n',
  ],
  [
    'a redirect, which is not followed',
    '302 Found',
    '',
    'http_status',
    'status 302: redirects are not followed',
    'location: http://127.0.0.1:1/?token=secret\r\n',
  ],
  [
    'an empty answer',
    '200 OK',
    '',
    'invalid_answer',
    'not a JSON object with ok and msg: application/json, ""',
  ],
])('%s', async (_, status, body, reason, msg, headers?: string) => {
  const details = { httpStatus: Number.parseInt(status, 10) };
  expect(await runCheck(http(status, body, headers))).toMatchObject({ reason, msg, details });
});

test('a message with colours, line breaks and no end is one short line', async () => {
  const msg = `\u001b[31mdown\u0000\r\n${'x'.repeat(1000)}`;
  const found = await runCheck(http('200 OK', JSON.stringify({ ok: false, msg })));
  expect(found.msg).toBe(`${`[31mdown ${'x'.repeat(1000)}`.slice(0, 200)}…`);
});

test.each([
  ['with its length said', `content-length: ${65_537}\r\n\r\n`],
  ['without', '\r\n'],
])('a body over 64 KiB, %s', async (_, head) => {
  const found = await runCheck(`HTTP/1.1 200 OK\r\n${head}${' '.repeat(65_537)}`);
  expect(found).toMatchObject({ reason: 'too_large' });
});

test('a body that never ends is given up at 64 KiB', async () => {
  const port = await servingBare((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      const more = (): void => {
        while (socket.writable && socket.write(`1000\r\n${' '.repeat(4096)}\r\n`));
        socket.once('drain', more);
      };
      more();
    });
  });
  const found = await checkHealth({ url: `http://127.0.0.1:${port}/health` });
  expect(found).toMatchObject({ reason: 'too_large' });
});

test.each([
  ['words', 'hello, this is no HTTP\r\n\r\n'],
  ['bytes', '\u0000\u0001\u0002\u0003\u0004'],
  ['the greeting of a database', 'J\u0000\u0000\u0000\n8.0.36\u0000'],
])('garbage instead of HTTP: %s', async (_, garbage) => {
  expect(await runCheck(garbage, false)).toMatchObject({ reason: 'invalid_answer' });
});

test('a head without an end', async () => {
  const found = await runCheck(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`, false);
  expect(found).toMatchObject({ reason: 'invalid_answer' });
});

test('a server that greets before it is asked', async () => {
  const port = await servingBare((socket) => socket.write('SSH-2.0-OpenSSH_9.2\r\n'));
  const found = await checkHealth({ url: `http://127.0.0.1:${port}/health` });
  expect(found).toMatchObject({ reason: 'invalid_answer' });
});
