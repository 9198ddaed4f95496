import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { checkHealth } from '../health.ts';
import { freePort } from '../ports.ts';
import { serving, servingBare, servingOn } from '../serving.ts';
import { until } from '../until.ts';
import { type Certificate, makeCertificates } from './pull/certificates.ts';

const healthy = JSON.stringify({ ok: true, msg: 'OK' });

describe('a role that answers', () => {
  test('is up, and each step is timed', async () => {
    const asked: unknown[] = [];
    const port = await serving(({ method, url, headers }, response) => {
      asked.push([method, url, headers.host, headers.accept]);
      response.setHeader('content-type', 'application/json').end(healthy);
    });
    const found = await checkHealth({ url: `http://127.0.0.1:${port}/health?deep=1` });
    expect(asked).toEqual([['GET', '/health?deep=1', `127.0.0.1:${port}`, 'application/json']]);
    expect(found).toMatchObject({
      msg: 'OK',
      details: { address: `127.0.0.1:${port}`, protocol: 'http', httpStatus: 200 },
    });
    expect(found.reason).toBeUndefined();
    expect(found.tlsNotAfterMs).toBeUndefined();
    expect(Object.keys(found.phasesMs!)).toEqual(['resolve', 'connect', 'first_byte', 'body']);
  });

  test('is asked over a new connection each time, which is closed', async () => {
    let connections = 0;
    const closed: Promise<void>[] = [];
    const port = await servingBare((socket) => {
      connections++;
      closed.push(new Promise((resolve) => socket.on('close', () => resolve())));
      socket.once('data', () =>
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${healthy.length}\r\n\r\n${healthy}`),
      );
    });
    for (let n = 1; n <= 3; n++) {
      expect((await checkHealth({ url: `http://127.0.0.1:${port}/health` })).reason).toBeUndefined();
      expect(connections).toBe(n);
    }
    await Promise.all(closed);
  });

  test('may take all of 64 KiB for it', async () => {
    const port = await serving((_, response) => response.end(healthy.padEnd(65_536)));
    expect((await checkHealth({ url: `http://127.0.0.1:${port}/health` })).reason).toBeUndefined();
  });

  test('is found by its name, at the address that stands first', async () => {
    const port = await serving((_, response) => response.end(healthy));
    const lookup = async (host: string) => (host === 'role.test' ? ['127.0.0.1', '192.0.2.1'] : []);
    const found = await checkHealth({ url: `http://role.test:${port}/health`, lookup });
    expect(found).toMatchObject({ msg: 'OK', details: { address: `127.0.0.1:${port}` } });
  });

  test('as localhost is looked for at IPv4 first', async () => {
    const port = await serving((_, response) => response.end(healthy));
    const found = await checkHealth({
      url: `http://localhost:${port}`,
      lookup: async () => ['::1', '127.0.0.1'],
    });
    expect(found).toMatchObject({ msg: 'OK', details: { address: `127.0.0.1:${port}` } });
  });
});

describe('credentials', () => {
  const guarded = (expected: string) =>
    serving((request, response) => {
      response.statusCode = request.headers.authorization === expected ? 200 : 401;
      response.end(response.statusCode === 200 ? healthy : 'no');
    });

  test('of a bearer are read at each check', async () => {
    const url = `http://127.0.0.1:${await guarded('Bearer new')}/health`;
    const auth = { bearer: { env: 'TOKEN' } };
    expect(await checkHealth({ url, auth, env: { TOKEN: 'old' } })).toMatchObject({
      reason: 'credentials',
      msg: 'status 401: the endpoint refuses the credentials of the health check (auth below health)',
    });
    expect(await checkHealth({ url })).toMatchObject({
      reason: 'credentials',
      msg: 'status 401: the endpoint asks for credentials, and the health check has none (auth below health)',
    });
    expect((await checkHealth({ url, auth, env: { TOKEN: 'new' } })).reason).toBeUndefined();
    const missing = await checkHealth({ url, auth });
    expect(missing).toMatchObject({
      reason: 'credentials',
      msg: 'the credentials of the health check cannot be read',
    });
  });

  test('that no header may hold are not sent, and not shown', async () => {
    for (const scheme of ['http', 'grpc']) {
      const url = `${scheme}://127.0.0.1:${await guarded('Bearer x')}/health`;
      const found = await checkHealth({ url, auth: { bearer: 'hidden\nvalue' } });
      expect(found.reason).toBe('credentials');
      expect(JSON.stringify(found)).not.toContain('hidden');
    }
  });

  test('of a user are sent as Basic', async () => {
    const url = `http://127.0.0.1:${await guarded('Basic dXNlcjpwYXNz')}/health`;
    const auth = { basic: { username: 'user', password: 'pass' } };
    expect((await checkHealth({ url, auth })).reason).toBeUndefined();
    expect(await checkHealth({ url })).toMatchObject({ reason: 'credentials', details: { httpStatus: 401 } });
  });
});

describe('over TLS', () => {
  const made = makeCertificates();
  const ours = made.authority('ours');

  const endOf = ({ cert }: Certificate): number =>
    Date.parse(
      execFileSync('openssl', ['x509', '-in', cert, '-noout', '-enddate'], { encoding: 'utf8' })
        .trim()
        .replace('notAfter=', ''),
    );
  const serveTls = (certificate: Certificate, more: object = {}) =>
    servingOn(
      createHttpsServer(
        { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key), ...more },
        (_, response) => response.end(healthy),
      ),
    );

  test('the certificate’s end is found, and the handshake is timed', async () => {
    const server = made.signed('server', ours, { days: 1 });
    const url = `https://127.0.0.1:${await serveTls(server)}/health`;
    const found = await checkHealth({ url, tls: { caFile: ours.cert } });
    expect(found).toMatchObject({
      msg: 'OK',
      tlsNotAfterMs: endOf(server),
      details: { tlsVersion: 'TLSv1.3' },
    });
    expect(Object.keys(found.phasesMs!)).toEqual(['resolve', 'connect', 'tls', 'first_byte', 'body']);
  });

  test('the earliest end in the chain counts, wherever it stands', async () => {
    const sans = 'DNS:middle\nbasicConstraints=critical,CA:TRUE';
    const middle = made.signed('middle', ours, { sans, days: 1 });
    const leaf = made.signed('leaf', middle, { days: 30 });
    const chain = join(made.folder, 'chain.pem');
    writeFileSync(chain, readFileSync(leaf.cert, 'utf8') + readFileSync(middle.cert, 'utf8'));
    const url = `https://127.0.0.1:${await serveTls({ cert: chain, key: leaf.key })}/health`;
    const found = await checkHealth({ url, tls: { caFile: ours.cert } });
    expect(found).toMatchObject({ msg: 'OK', tlsNotAfterMs: endOf(middle) });
    expect(endOf(middle)).toBeLessThan(endOf(leaf));
  });

  test('another name may be asked for', async () => {
    const server = made.signed('other', ours, { sans: 'DNS:role.internal' });
    const url = `https://127.0.0.1:${await serveTls(server)}/health`;
    const found = await checkHealth({ url, tls: { caFile: ours.cert, serverName: 'role.internal' } });
    expect(found.reason).toBeUndefined();
  });

  test('any certificate will do where that is allowed', async () => {
    const url = `https://127.0.0.1:${await serveTls(made.signed('any', ours))}/health`;
    expect((await checkHealth({ url, tls: { insecure: true } })).reason).toBeUndefined();
  });

  // A server of Node closes the connection without saying why; OpenSSL's, like those of Go and Java, sends an alert.
  test.each([
    [
      'of another authority',
      { ours: false },
      /^the server does not trust the client’s certificate; .*unknown ca/,
    ],
    [
      'that has expired',
      { days: -1 },
      /^the client’s certificate has expired; renew tls\.certFile .*expired/,
    ],
  ] as const)(
    'a certificate of ours %s is refused after the handshake, in plain words',
    async (name, how, said) => {
      const server = made.signed('alerts', ours);
      const by = 'ours' in how ? made.authority('theirs') : ours;
      const client = made.signed(name.replaceAll(' ', '-'), by, 'days' in how ? how : {});
      const port = await freePort();
      const files = ['-cert', server.cert, '-key', server.key, '-CAfile', ours.cert];
      const options = [
        ...files,
        '-accept',
        `127.0.0.1:${port}`,
        '-Verify',
        '1',
        '-verify_return_error',
        '-www',
      ];
      const running = spawn('openssl', ['s_server', ...options], { stdio: 'ignore' });
      onTestFinished(() => void running.kill('SIGKILL'));
      const tls = { caFile: ours.cert, certFile: client.cert, keyFile: client.key };
      const check = () => checkHealth({ url: `https://127.0.0.1:${port}/health`, tls });
      await until('the server listens', async () => (await check()).reason !== 'refused');
      expect(await check()).toMatchObject({ reason: 'tls', msg: expect.stringMatching(said) });
    },
  );

  test('a certificate of ours is shown, as its file is now', async () => {
    const server = made.signed('strict', ours);
    const client = made.signed('client', ours);
    const ca = readFileSync(ours.cert);
    const port = await serveTls(server, { ca, requestCert: true, rejectUnauthorized: true });
    const url = `https://127.0.0.1:${port}/health`;
    const files = { certFile: join(made.folder, 'live.pem'), keyFile: join(made.folder, 'live.key') };
    const tls = { caFile: ours.cert, ...files };
    expect(await checkHealth({ url, tls })).toMatchObject({
      reason: 'credentials',
      msg: expect.stringContaining('live.pem'),
    });
    writeFileSync(files.certFile, readFileSync(client.cert));
    writeFileSync(files.keyFile, readFileSync(client.key));
    expect((await checkHealth({ url, tls })).reason).toBeUndefined();
    writeFileSync(files.certFile, 'half a certificate');
    expect(await checkHealth({ url, tls })).toMatchObject({ reason: 'credentials' });
    expect((await checkHealth({ url, tls: { caFile: ours.cert } })).reason).toMatch(/^(?:tls|reset)$/);
  });
});
