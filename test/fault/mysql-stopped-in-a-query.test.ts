import { chmodSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mysql } from '../../src/probes/stores/mysql-poll.ts';

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

const sleeping = { schemaQuery: 'SELECT SLEEP(600)', timeoutMs: 600_000 };

describe.skipIf(!hasMariadb)('a store of kind mysql that is stopped in the middle of a query', () => {
  let server: Mariadb;
  let certificates: Certificates;

  beforeAll(async () => {
    certificates = makeCertificates();
    const { cert, key } = certificates.authority('store');
    chmodSync(certificates.folder, 0o755);
    chmodSync(key, 0o644);
    server = await startMariadb(`--ssl-cert=${cert}`, `--ssl-key=${key}`);
    await server.sql(schemaStatements('svc_main'));
    await server.sql(usersStatements);
  });

  afterAll(() => server?.stop());

  const sessions = () =>
    server.sql("SELECT id, info FROM information_schema.PROCESSLIST WHERE user = 'full'");

  /** A check that hangs in its query: the server's id of its session, and the fault with which it ends. */
  async function hanging(target: Partial<PollTarget> = {}, signal = new AbortController().signal) {
    // A session that was killed a moment ago may still be listed.
    const known = new Set((await sessions()).map((row) => row.id));
    const fault = pollOnce(mysql, targetOf(server, { ...sleeping, ...target }), signal).then(
      () => expect.fail('the check succeeded'),
      (thrown: unknown) => mysql.faultOf(thrown),
    );
    const ownSession = async () =>
      (await sessions()).find((row) => !known.has(row.id) && row.info?.includes('SLEEP(600)'));
    const session = await pollMariadb(ownSession, (row) => row !== undefined);
    return { fault, id: session!.id as number };
  }

  test.each([
    ['without TLS', undefined],
    ['with TLS', { insecure: true }],
  ])('its connection is killed, %s', async (_, tls) => {
    const { fault, id } = await hanging({ tls });
    await server.sql(`KILL ${id}`);
    expect((await fault).reason).toBe('reset');
  });

  test('its query is killed', async () => {
    const { fault, id } = await hanging();
    await server.sql(`KILL QUERY ${id}`);
    expect(await fault).toEqual({ reason: 'query_failed', msg: 'Query execution was interrupted (1317)' });
    await pollMariadb(sessions, (rows) => rows.length === 0);
  });

  test('time runs out: the connection is gone when the check settles', async () => {
    const controller = new AbortController();
    const { fault, id } = await hanging({}, controller.signal);
    controller.abort(new Error('no result in time'));
    expect(await fault).toEqual({
      reason: 'too_slow',
      msg: `127.0.0.1:${server.port}: connected, but a statement was not answered in time`,
    });
    await server.sql(`KILL ${id}`).catch(() => {});
    await pollMariadb(sessions, (rows) => rows.length === 0);
  });

  test('the server hangs, and goes on later', async () => {
    const controller = new AbortController();
    const { fault, id } = await hanging({}, controller.signal);
    server.signal('SIGSTOP');
    controller.abort(new Error('no result in time'));
    expect((await fault).reason).toBe('too_slow');
    const next = new AbortController();
    const second = pollOnce(mysql, targetOf(server), next.signal).catch((thrown: unknown) =>
      mysql.faultOf(thrown),
    );
    next.abort(new Error('no result in time'));
    expect(await second).toMatchObject({
      reason: expect.stringMatching(/^(?:too_slow|connect_timeout|resolve)$/),
    });
    server.signal('SIGCONT');
    await server.sql(`KILL ${id}`).catch(() => {});
    expect((await pollOnce(mysql, targetOf(server), new AbortController().signal)).schemaVersion).toBe('0.8');
  });

  test('the server is shut down, is down, and is back', async () => {
    const { fault } = await hanging();
    const restarted = server.restart();
    expect((await fault).reason).toMatch(/^(?:reset|shutting_down)$/);
    await restarted;
    expect((await pollOnce(mysql, targetOf(server), new AbortController().signal)).schemaVersion).toBe('0.8');
  });

  test('the server is killed', async () => {
    const { fault } = await hanging();
    server.signal('SIGKILL');
    expect((await fault).reason).toBe('reset');
    // The kernel accepts connections for the server until it is gone completely.
    const down = () => pollOnce(mysql, targetOf(server), new AbortController().signal).catch(mysql.faultOf);
    await pollMariadb(down, (found) => 'reason' in found && found.reason === 'refused');
  });
});
