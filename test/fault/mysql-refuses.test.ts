import { chmodSync } from 'node:fs';
import { type Connection, createConnection } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mysql } from '../../src/probes/stores/mysql-poll.ts';
import { grantStatements } from '../../src/probes/stores/store-grants.ts';

import { type Certificates, makeCertificates } from '../integration/pull/certificates.ts';
import {
  hasMariadb,
  type Mariadb,
  pollMariadb,
  schemaStatements,
  startMariadb,
  targetOf,
  usersStatements,
} from '../mariadb.ts';
import { type PollTarget, pollOnce } from '../poll-store.ts';

const never = new AbortController().signal;

describe.skipIf(!hasMariadb)('a store of kind mysql that refuses', () => {
  let server: Mariadb;
  let certificates: Certificates;
  let caFile: string;

  const pollStore = (target: Partial<PollTarget> = {}) => pollOnce(mysql, targetOf(server, target), never);
  const faultOf = async (target: Partial<PollTarget> = {}) => {
    const thrown = await pollStore(target).then(
      () => expect.fail('the check succeeded'),
      (error: unknown) => error,
    );
    const fault = mysql.faultOf(thrown);
    expect(JSON.stringify(fault)).not.toMatch(/swordfish|sardine/);
    return fault;
  };

  beforeAll(async () => {
    certificates = makeCertificates();
    const ca = certificates.authority('ca');
    const { cert, key } = certificates.signed('expired', ca, { days: -1 });
    caFile = ca.cert;
    chmodSync(certificates.folder, 0o755);
    chmodSync(key, 0o644);
    server = await startMariadb(`--ssl-cert=${cert}`, `--ssl-key=${key}`, `--ssl-ca=${caFile}`);
    await server.sql(schemaStatements('svc_main'));
    await server.sql(usersStatements);
  });

  afterAll(() => server?.stop());

  test('a wrong password', async () => {
    expect(await faultOf({ password: 'sardine' })).toEqual({
      reason: 'credentials',
      msg: "Access denied for user 'full'@'127.0.0.1' (using password: YES) (1045); check user and password; if the account requires TLS, add tls: {} to the store",
    });
    expect((await faultOf({ password: undefined })).reason).toBe('credentials');
    expect((await faultOf({ user: 'stranger' })).reason).toBe('credentials');
  });

  test('an account that is locked, and a password that has expired', async () => {
    await server.sql("CREATE USER locked@'%' IDENTIFIED BY 'swordfish' ACCOUNT LOCK");
    await server.sql("CREATE USER expired@'%' IDENTIFIED BY 'swordfish' PASSWORD EXPIRE");
    expect((await faultOf({ user: 'locked' })).reason).toBe('credentials');
    expect((await faultOf({ user: 'expired' })).reason).toBe('credentials');
  });

  test('an account that must come by TLS', async () => {
    await server.sql("CREATE USER secured@'%' IDENTIFIED BY 'swordfish' REQUIRE SSL");
    expect((await faultOf({ user: 'secured' })).msg).toContain(
      'if the account requires TLS, add tls: {} to the store',
    );
    const found = await pollStore({ user: 'secured', tls: { insecure: true }, database: undefined });
    expect(found.serverVersion).toContain('MariaDB');
  });

  test('a database that is missing', async () => {
    await server.sql("CREATE USER sighted@'%' IDENTIFIED BY 'swordfish'; GRANT SELECT ON *.* TO sighted@'%'");
    expect(await faultOf({ user: 'sighted', database: 'svc_none' })).toEqual({
      reason: 'database_missing',
      msg: "Unknown database 'svc_none' (1049)",
    });
  });

  test('a database that was dropped is missing, also to a user with nothing but the printed grants', async () => {
    await server.sql('CREATE DATABASE svc_gone; CREATE TABLE svc_gone.schema_version (a INT)');
    for (const line of grantStatements('mysql', 'granted', ['svc_gone']))
      if (line !== '') await server.sql(line.replace('<password>', 'swordfish'));
    await server.sql('DROP DATABASE svc_gone');
    expect(await faultOf({ user: 'granted', database: 'svc_gone' })).toMatchObject({
      reason: 'database_missing',
    });
  });

  test('a database that is not there, to a user with the printed grants of others: the server does not say which it is', async () => {
    await server.sql('CREATE DATABASE svc_there; CREATE TABLE svc_there.schema_version (a INT)');
    for (const line of grantStatements('mysql', 'elsewhere', ['svc_there']))
      if (line !== '') await server.sql(line.replace('<password>', 'swordfish'));
    for (const database of ['svc_misspelt', 'mysql'])
      expect(await faultOf({ user: 'elsewhere', database })).toEqual({
        reason: 'denied',
        msg: `Access denied for user 'elsewhere'@'%' to database '${database}' (1044); there is no such database, or the user has no right on it: svc-agent probe --print-grants prints what it needs`,
      });
  });

  test('the printed grants run on a database without a schema, and again once it is there', async () => {
    await server.sql('CREATE DATABASE svc_new');
    const lines = grantStatements('mysql', 'early', ['svc_new']).filter((line) => line !== '');
    for (const line of lines) await server.sql(line.replace('<password>', 'swordfish'));
    expect((await pollStore({ user: 'early', database: 'svc_new' })).schemaVersion).toBeUndefined();
    await server.sql(schemaStatements('svc_new').replace('CREATE DATABASE svc_new;', ''));
    for (const line of lines.slice(-3)) await server.sql(line);
    expect((await pollStore({ user: 'early', database: 'svc_new' })).schemaVersion).toBe('0.8');
    const [limit] = await server.sql(
      "SELECT max_user_connections AS most FROM mysql.user WHERE User = 'early'",
    );
    expect(Number(limit!.most)).toBe(10);
  });

  test('a table or a row that is missing is a finding, a column that is missing is unknown; the store is up', async () => {
    await server.sql('RENAME TABLE svc_main.schema_version TO svc_main.elsewhere');
    expect((await pollStore()).schemaMissing).toContain("doesn't exist");
    await server.sql('RENAME TABLE svc_main.elsewhere TO svc_main.schema_version');
    expect((await pollStore({ schemaQuery: 'SELECT nothing FROM schema_version' })).schemaUnknown).toContain(
      'nothing',
    );
    const other = await pollStore({
      schemaQuery: "SELECT curr_version FROM schema_version WHERE db_name = 'x'",
    });
    expect(other.schemaMissing).toBe('the schema query gives no row');
    expect(other.schemaVersion).toBeUndefined();
    expect((await pollStore({ schemaQuery: 'SELECT NULL' })).schemaMissing).toBe(
      'the schema query gives no row',
    );
    expect((await pollStore()).schemaVersion).toBe('0.8');
  });

  test('a name with quotes is a name', async () => {
    await server.sql("CREATE DATABASE `it's ``here``\\`");
    await server.sql("CREATE USER wide@'%' IDENTIFIED BY 'swordfish'; GRANT SELECT ON *.* TO wide@'%'");
    const found = await pollStore({
      user: 'wide',
      database: "it's `here`\\",
      schemaQuery: 'SELECT {database}',
    });
    expect(found.schemaVersion).toBe("it's `here`\\");
  });

  test('the limit of connections, of the account and of the server', async () => {
    const { port } = server;
    const one = { host: '127.0.0.1', port, password: 'swordfish' };
    await server.sql("CREATE USER few@'%' IDENTIFIED BY 'swordfish' WITH MAX_USER_CONNECTIONS 1");
    const first = await createConnection({ ...one, user: 'few' });
    // Others can still connect.
    expect((await faultOf({ user: 'few' })).reason).toBe('denied');
    first.destroy();

    await server.sql('SET GLOBAL max_connections = 10');
    const held: Connection[] = [];
    const fill = async () => {
      try {
        held.push(await createConnection({ ...one, user: 'full' }));
        return 0;
      } catch (error) {
        return (error as { errno: number }).errno;
      }
    };
    await pollMariadb(fill, (errno) => errno === 1040);
    expect(await faultOf()).toEqual({ reason: 'too_many_connections', msg: 'Too many connections (1040)' });
    for (const connection of held) connection.destroy();
    await server.sql('SET GLOBAL max_connections = 151');
    expect((await pollStore()).connectionsMax).toBe(151);
  });

  test('a certificate that has expired', async () => {
    expect((await faultOf({ tls: { caFile } })).reason).toBe('tls_expired');
    const found = await pollStore({ tls: { caFile, insecure: true } });
    expect(found.tlsNotAfterMs).toBeLessThan(Date.now());
  });

  test('a host name that does not exist', async () => {
    const address = { host: 'store.invalid', port: server.port };
    expect((await faultOf({ address })).reason).toBe('resolve');
  });
});
