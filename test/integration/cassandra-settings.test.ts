import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cassandra, hasCassandra, startCassandra } from '../cassandra.ts';
import { pollCassandra, verdict } from '../poll-cassandra.ts';
import { until } from '../until.ts';
import { type Certificate, type Certificates, makeCertificates } from './pull/certificates.ts';

/** A limit above the few connections that earlier checks may still have to the node. */
const limit = 16;

describe.skipIf(!hasCassandra)('Apache Cassandra with other settings, TLS and a limit of connections', () => {
  let server: Cassandra;
  let made: Certificates;
  let ours: Certificate;
  let signed: Certificate;
  beforeAll(async () => {
    made = makeCertificates();
    ours = made.authority('ours');
    signed = made.signed('node', ours, { sans: 'DNS:localhost', days: 1 });
    const pem = join(made.folder, 'both.pem');
    writeFileSync(pem, readFileSync(signed.key, 'utf8') + readFileSync(signed.cert, 'utf8'));
    server = await startCassandra({
      settings: `
incremental_backups: true
auto_snapshot: false
native_transport_max_concurrent_connections: ${limit}
client_encryption_options:
  enabled: true
  optional: true
  ssl_context_factory: {class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}
  keystore: ${pem}
`,
    });
  });
  afterAll(() => server?.remove());

  test('incremental backups are on, snapshots before a drop are off, connections are limited', async () => {
    const { found } = await pollCassandra({ port: server.port });
    expect(verdict(found, 'incremental_backups')).toMatchObject({
      holds: true,
      found: 'incremental_backups = true',
    });
    expect(verdict(found, 'auto_snapshot')).toMatchObject({ holds: false, found: 'auto_snapshot = false' });
    expect(found!.connectionsMax).toBe(limit);
  });

  const secure = (tls: object, host = 'localhost') =>
    pollCassandra({ port: server.port, address: { host, port: server.port }, tls });

  test('over TLS the certificate’s end is known', async () => {
    const { found } = await secure({ caFile: ours.cert });
    expect(found!.serverVersion).toMatch(/^5\./);
    expect(found!.tlsNotAfterMs).toBe(Date.parse(new X509Certificate(readFileSync(signed.cert)).validTo));
  });

  test('a certificate of somebody else, or of another host, is refused unless told otherwise', async () => {
    const other = made.authority('other');
    expect(await secure({ caFile: other.cert })).toMatchObject({ fault: { reason: 'tls_untrusted' } });
    expect(await secure({ caFile: ours.cert }, '127.0.0.1')).toMatchObject({
      fault: { reason: 'tls_hostname' },
    });
    expect((await secure({ caFile: ours.cert, serverName: 'localhost' }, '127.0.0.1')).found).toBeDefined();
    expect((await secure({ insecure: true }, '127.0.0.1')).found).toBeDefined();
  });

  test('at its limit the node closes a new connection, and takes one again when there is room', async () => {
    const held: Socket[] = [];
    try {
      const refused = await until('the limit is reached', async () => {
        const socket = connect(server.port, '127.0.0.1').on('error', () => {});
        held.push(socket);
        await once(socket, 'connect');
        const { fault } = await pollCassandra({ port: server.port });
        return fault;
      });
      expect(refused.reason).toBe('reset');
    } finally {
      for (const socket of held) socket.destroy();
    }
    await until(
      'there is room again',
      async () => (await pollCassandra({ port: server.port })).found !== undefined,
    );
  });
});
