import { expect, test } from 'vitest';
import { servingBare } from '../serving.ts';
import { checkStore, storeOn } from '../store-probe.ts';

const message = (type: string, length: number, rest = '') =>
  Buffer.concat([
    Buffer.from(type),
    Buffer.from([length >>> 24, length >> 16, length >> 8, length]),
    Buffer.from(rest, 'latin1'),
  ]);
const loggedIn = [message('R', 8, '\0\0\0\0'), message('Z', 5, 'I')];

async function reasonFor(answer: Buffer | readonly Buffer[]): Promise<string | undefined> {
  const whole = Buffer.concat([answer].flat());
  const port = await servingBare((socket) => socket.once('data', () => socket.write(whole)));
  return (await checkStore(storeOn(port))).reason;
}

test('a web server is named', async () => {
  const answer = 'HTTP/1.1 400 Bad Request\r\n\r\n';
  const port = await servingBare((socket) => socket.once('data', () => socket.write(answer)));
  const { msg } = await checkStore(storeOn(port));
  expect(msg).toMatch(/: an HTTP server answers there$/);
});

test.each<[string, Buffer | readonly Buffer[]]>([
  ['a web server', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['a shell', Buffer.from('SSH-2.0-OpenSSH_9.2\r\n')],
  ['another database', Buffer.from([74, 0, 0, 0, 10, 53, 46, 53])],
  ['zeros', Buffer.alloc(64)],
  ['the right letter, a length of gigabytes', message('R', 0x7fffffff)],
  ['a way to log in that nobody knows', message('R', 8, '\0\0\0\x63')],
  ['an error without an end', message('E', 5, 'S')],
  ['an error of an old version', message('E', 40, 'FATAL: unsupported frontend protocol')],
  ['an error that goes on after its end', message('E', 10, 'SA\0\0MB')],
  ['a length below that of the length', message('R', 3, '\0\0\0\0')],
  ['a notice without an end, after the log-in', [...loggedIn, message('N', 6, 'SA')]],
  ['a message of no type, after the log-in', [...loggedIn, message('\x01', 8, 'abcd')]],
  ['rows that nobody asked for', [...loggedIn, message('D', 6, '\0\0')]],
])('%s: it is no PostgreSQL', async (_, answer) => expect(await reasonFor(answer)).toBe('protocol'));

test('answers without end are not kept', async () => {
  const notice = message('N', 65_004, 'x'.repeat(65_000));
  expect(await reasonFor([...loggedIn, ...Array<Buffer>(200).fill(notice)])).toBe('protocol');
});

test('an error that comes byte by byte is an error', async () => {
  const error = message('E', 4 + 29, 'SFATAL\0C28P01\0Mno, not so\0\0\0');
  error.writeUInt32BE(error.length - 2, 1);
  const bytes = [...error.subarray(0, -1)].map((byte) => Buffer.from([byte]));
  const port = await servingBare((socket) => {
    socket.setNoDelay(true);
    socket.once('data', () => {
      const next = () => bytes.length > 0 && socket.write(bytes.shift()!, () => setImmediate(next));
      next();
    });
  });
  expect(await checkStore(storeOn(port))).toMatchObject({ reason: 'credentials', msg: 'no, not so (28P01)' });
});
