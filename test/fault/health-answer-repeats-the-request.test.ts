import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { checkHealth } from '../health.ts';
import { servingOn } from '../serving.ts';

// Error pages repeat the path and sometimes the headers of a request. Neither the page nor the log shows its secrets.

const secret = 's3"cret-of-the-check';
const path = '/probes/T0123456789/health?full=true&sig=s3cret';

test.each([
  ['a text', (request: string) => `Cannot serve ${request}`, 503],
  ['a message', (request: string) => JSON.stringify({ ok: false, msg: `refused: ${request}` }), 503],
  ['a message of a role that is well', (request: string) => JSON.stringify({ ok: true, msg: request }), 200],
])('%s that repeats the request', async (_, answer, status) => {
  const server = createServer((request, response) => {
    const { authorization = '' } = request.headers;
    const pair = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString();
    response.statusCode = status;
    response.end(answer(`${request.url} ${authorization.slice(6)} ${pair} ${JSON.stringify(pair)}`));
  });
  const url = `http://127.0.0.1:${await servingOn(server)}`;
  const auth = { basic: { username: 'a', password: { env: 'P' } } };
  const { msg } = await checkHealth({ url: url + path, auth, env: { P: secret } });
  expect(msg).toContain('/probes/***/health***');
  for (const part of ['T0123456789', 's3cret', 'cret-of', Buffer.from(`a:${secret}`).toString('base64')])
    expect(msg).not.toContain(part);
});
