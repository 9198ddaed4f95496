import { request } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { type HttpReply, responseOver } from '../../src/probes/health/http-response.ts';
import { servingBare } from '../serving.ts';

/** Node's own HTTP client is the oracle for what a health check reads, and for what it refuses to read. */

type Read = HttpReply | 'not HTTP' | 'cut off';

const byNode = (port: number) =>
  new Promise<Read>((resolve) => {
    const failed = ({ code }: NodeJS.ErrnoException) =>
      resolve(code?.startsWith('HPE_') ? 'not HTTP' : 'cut off');
    const asked = request({ createConnection: () => connect(port, '127.0.0.1') });
    asked.on('error', failed).on('response', (message) => {
      const pieces: Buffer[] = [];
      const { statusCode: status = 0, headers } = message;
      message.on('error', failed).on('data', (piece) => pieces.push(piece));
      message.on('end', () => {
        const { 'content-type': contentType = '', location } = headers;
        resolve({ status, contentType, location, body: Buffer.concat(pieces).toString() });
      });
    });
    asked.end();
  });

const byCheck = (port: number) =>
  new Promise<Read>((resolve) => {
    const socket = connect(port, '127.0.0.1', async () => {
      const asked = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
      const reply = responseOver(socket, asked, () => {});
      resolve(await reply.catch(({ reason }) => (reason === 'invalid_answer' ? 'not HTTP' : 'cut off')));
      socket.destroy();
    });
    socket.on('error', () => {});
  });

const ok = 'HTTP/1.1 200 OK\r\n';
const two = 'content-length: 2\r\n\r\nok';
const chunked = `${ok}transfer-encoding: chunked\r\n\r\n`;
const texts: Readonly<Record<string, string>> = {
  'with a length': `${ok}content-type: a/b\r\n${two}`,
  'without a reason': `HTTP/1.1 200\r\n${two}`,
  'with an empty reason': `HTTP/1.1 200 \r\n${two}`,
  'of HTTP/1.0, until the end': 'HTTP/1.0 200 OK\r\n\r\nbody',
  'of HTTP/2.0 as text': 'HTTP/2.0 200 OK\r\n\r\nbody',
  'in lower case': `http/1.1 200 OK\r\n${two}`,
  'with LF only': `HTTP/1.1 200 OK\ncontent-length: 2\n\nok`,
  'with one LF': `${ok}content-length: 2\n\r\nok`,
  'with one CR': `HTTP/1.1 200 OK\rx: y\r\n\r\nok`,
  'after 100': `HTTP/1.1 100 Continue\r\n\r\n${ok}${two}`,
  'after 103': `HTTP/1.1 103 Early\r\nlink: x\r\n\r\n${ok}${two}`,
  'with 204': 'HTTP/1.1 204 No\r\n\r\n',
  'with 304 and a length': 'HTTP/1.1 304 No\r\ncontent-length: 5\r\n\r\n',
  'in chunks': `${chunked}2\r\nok\r\n3;ext=1\r\nabc\r\n0\r\n\r\n`,
  'in chunks with a trailer': `${chunked}2\r\nok\r\n0\r\nx: y\r\n\r\n`,
  'in chunks with zeros': `${chunked}000000000002\r\nok\r\n0\r\n\r\n`,
  'in gzip and chunks': `${ok}transfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
  'in gzip': `${ok}transfer-encoding: gzip\r\n\r\nok`,
  'in chunks with a length': `${ok}transfer-encoding: chunked\r\n${two}`,
  'with two lengths': `${ok}content-length: 2\r\n${two}`,
  'with a length that is a word': `${ok}content-length: x\r\n\r\nok`,
  'with a negative length': `${ok}content-length: -1\r\n\r\nok`,
  'with a list of lengths': `${ok}content-length: 2, 2\r\n\r\nok`,
  'with an empty length': `${ok}content-length:\r\n\r\nok`,
  'with a length of 23 digits': `${ok}content-length: 99999999999999999999999\r\n\r\nok`,
  'with a length and blanks': `${ok}content-length: 2 \r\n\r\nok`,
  'shorter than its length': `${ok}content-length: 5\r\n\r\nok`,
  'with a folded header': `${ok}x: a\r\n b\r\n${two}`,
  'with a blank in a name': `${ok}x : a\r\n${two}`,
  'without a colon': `${ok}xyz\r\n${two}`,
  'without a name': `${ok}: a\r\n${two}`,
  'with a control character': `${ok}x: a\u0001b\r\n${two}`,
  'with a zero': `${ok}x: a\u0000b\r\n${two}`,
  'with tabs': `${ok}x:\ta\tb\t\r\n${two}`,
  'with other letters in a header': `${ok}content-type: ü\r\n${two}`,
  'with two types': `${ok}content-type: a/a\r\ncontent-type: b/b\r\n${two}`,
  'with two locations': 'HTTP/1.1 302 Found\r\nlocation: a\r\nlocation: b\r\ncontent-length: 0\r\n\r\n',
  'with a status of two digits': `HTTP/1.1 20 OK\r\n${two}`,
  'with a status of four digits': `HTTP/1.1 2000 OK\r\n${two}`,
  'with status 999': `HTTP/1.1 999 OK\r\n${two}`,
  'with two blanks': `HTTP/1.1  200 OK\r\n${two}`,
  'with other letters in its reason': `HTTP/1.1 200 ÖK\r\n${two}`,
  'with a size that is a word': `${chunked}zz\r\nok\r\n0\r\n\r\n`,
  'with a chunk over its size': `${chunked}2\r\nokk\r\n0\r\n\r\n`,
  'in chunks with LF': `${chunked}2\nok\n0\n\n`,
  'without its last chunk': `${chunked}2\r\nok\r\n`,
  'with a chunk that is too large': `${chunked}fffffffffffffffffffff\r\nok\r\n0\r\n\r\n`,
  'with a head of 16,000 bytes': `${ok}x: ${'y'.repeat(15_900)}\r\n${two}`,
  'with a head of 17,000 bytes': `${ok}x: ${'y'.repeat(17_000)}\r\n${two}`,
  'cut off in its head': `${ok}content`,
  'that is empty': '',
  'of another protocol': 'ICY 200 OK\r\n\r\nok',
};

test.each(Object.entries(texts))('a response %s', async (_, text) => {
  const bytes = Buffer.from(text);
  const port = await servingBare((socket) => socket.once('data', () => socket.end(bytes)));
  expect(await byCheck(port)).toEqual(await byNode(port));
});
