import { copyFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openBed, openReceiver } from '../hosted.ts';
import { makeCertificates } from '../integration/pull/certificates.ts';
import { servingOn } from '../serving.ts';
import { until } from '../until.ts';

test('secrets are read anew for each request; a missing one is waited for', async () => {
  const receiver = await openReceiver();
  let token: string | undefined = 'one';
  const readSecret = async () => {
    if (token === undefined) throw new Error('the file is gone');
    return `${token}\n`;
  };
  const headers = { 'X-Scope-OrgID': 'tenant', 'Content-Type': 'mine', 'User-Agent': 'mine' };
  const bed = await openBed(receiver.url, { auth: { bearer: { file: 'token' } }, headers }, { readSecret });
  await bed.tick();
  await until('the first one goes through', () => bed.delivered() === 1);
  token = undefined;
  await bed.tick();
  await until('the token is missed', () => bed.failures.credentials === 1);
  token = 'two';
  bed.clock.advance(250);
  await until('the next try goes through', () => bed.delivered() === 2);
  expect(receiver.received.map(({ headers: sent }) => sent.authorization)).toEqual([
    'Bearer one',
    'Bearer two',
  ]);
  expect(receiver.received[1]!.headers).toMatchObject({
    'x-scope-orgid': 'two',
    'user-agent': 'svc-agent/1.2.3',
    'content-type': 'application/x-protobuf;proto=io.prometheus.write.v2.Request',
    'content-encoding': 'snappy',
    'x-prometheus-remote-write-version': '2.0.0',
  });
  expect(receiver.received[1]!.url).toBe('/api/v1/write?tenant=a');
  await bed.stop();
  await receiver.close();
});

test('a token that no header can have is a failure of the credentials, and is not shown', async () => {
  const receiver = await openReceiver();
  const bed = await openBed(receiver.url, { auth: { bearer: 'first-line\nsecond-line' } });
  await bed.tick();
  await until('it fails', () => bed.told.size > 0);
  expect(bed.failures).toEqual({ credentials: 1 });
  expect([...bed.told]).toEqual([
    'cannot read the credentials of hostedmetrics: the secret has a character that a header cannot have, such as a line break; use one line',
  ]);
  await bed.stop();
  await receiver.close();
});

test('basic authentication', async () => {
  const receiver = await openReceiver();
  const bed = await openBed(receiver.url, { auth: { basic: { username: 'me', password: 'pä:ss' } } });
  await bed.tick();
  await until('it goes through', () => bed.delivered() === 1);
  const [, pair] = receiver.received[0]!.headers.authorization!.split(' ');
  expect(Buffer.from(pair!, 'base64').toString()).toBe('me:pä:ss');
  await bed.stop();
  await receiver.close();
});

test('a receiver that repeats the credentials: the text of the failure has its status, but no credentials', async () => {
  const receiver = await openReceiver();
  receiver.reply(({ headers, url }, response) => {
    response.writeHead(401).end(`${headers.authorization}\n${headers['x-key']} ${url}  ${'x'.repeat(300)}`);
  });
  const shown = async (own: Parameters<typeof openBed>[1], address = receiver.url) => {
    const bed = await openBed(address, own);
    await bed.tick();
    await until('it is refused', () => bed.told.size > 0);
    await bed.stop();
    return [...bed.told];
  };
  const cut = (text: string) => `status 401: ${text.padEnd(200, 'x')}…`;
  const headers = { 'X-Key': 'another-secret' };
  expect(await shown({ auth: { bearer: 'a-secret' }, headers })).toEqual([
    cut('Bearer *** *** /api/v1/write*** '),
  ]);
  expect(await shown({ auth: { basic: { username: 'me', password: 'pä:ss' } } })).toEqual([
    cut('Basic *** undefined /api/v1/write*** '),
  ]);
  await receiver.close();
});

async function openTls(own: { cert: string; key: string }, clientCa: string): Promise<number> {
  const server = createServer(
    {
      cert: readFileSync(own.cert),
      key: readFileSync(own.key),
      ca: readFileSync(clientCa),
      requestCert: true,
      rejectUnauthorized: true,
    },
    (request, response) => {
      request.resume();
      request.on('end', () =>
        response.writeHead(204, { 'x-prometheus-remote-write-samples-written': '1' }).end(),
      );
    },
  );
  return servingOn(server);
}

test('TLS: only with a certificate of our own, and one of theirs that we trust; a renewed one is taken up', async () => {
  const { folder, authority, signed } = makeCertificates();
  const [trusted, other] = [authority('trusted'), authority('other')];
  const [server, client] = [signed('server', trusted), signed('client', trusted)];
  const endpoint = `https://127.0.0.1:${await openTls(server, trusted.cert)}/`;
  const mine = { cert: join(folder, 'mine.pem'), key: join(folder, 'mine.key') };
  const use = ({ cert, key }: { cert: string; key: string }) => {
    copyFileSync(cert, mine.cert);
    copyFileSync(key, mine.key);
  };
  use(client);
  const tls = { certFile: mine.cert, keyFile: mine.key, serverName: 'localhost' };

  const trusting = await openBed(endpoint, { tls: { ...tls, caFile: trusted.cert } });
  await trusting.tick();
  await until('it goes through', () => trusting.delivered() === 1);
  await trusting.stop();

  const wary = await openBed(endpoint, { tls: { ...tls, caFile: other.cert } });
  await wary.tick();
  await until('their certificate is refused', () => wary.failures.tls === 1);
  await wary.stop();

  use(signed('stranger', other));
  const renewing = await openBed(endpoint, { tls: { ...tls, caFile: trusted.cert } });
  await renewing.tick();
  await until('ours is refused', () => Object.keys(renewing.failures).length === 1);
  use(client);
  renewing.clock.advance(250);
  await until('the renewed one goes through', () => renewing.delivered() === 1);
  await renewing.stop();

  const missing = await openBed(endpoint, { tls: { ...tls, caFile: join(folder, 'nowhere.pem') } });
  await missing.tick();
  await until('the file is missed', () => missing.failures.credentials === 1);
});
