import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { bench, checkStore, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

const right = 'p@ss/ "wörd"';

describe.skipIf(!hasPostgres)('a password that is wrong', () => {
  let server: Postgres;
  const runCheck = async (password: string | undefined, user: string) => {
    const { deps, logged } = bench();
    const finding = await checkStore(storeOn(server.port, { user, password }), { deps });
    return { finding, shown: JSON.stringify([finding, logged]) };
  };
  beforeAll(async () => {
    server = await startPostgres();
    for (const method of ['md5', 'scram-sha-256']) {
      await server.query(
        `SET password_encryption = '${method}'; CREATE ROLE "by ${method}" LOGIN PASSWORD '${right}'`,
      );
    }
    await server.query(`CREATE ROLE "by password" LOGIN PASSWORD '${right}'`);
    const file = join(server.data, 'pg_hba.conf');
    const lines = ['md5', 'scram-sha-256', 'password'].map(
      (method) => `host all "by ${method}" 127.0.0.1/32 ${method}\n`,
    );
    const nobody = 'host all nobody 127.0.0.1/32 reject\n';
    writeFileSync(file, lines.join('') + nobody + readFileSync(file, 'utf8'));
    server.configure([]);
    await pollUntil(
      () => runCheck('wrong', 'nobody'),
      ({ finding }) => finding.msg.includes('pg_hba.conf'),
    );
  });
  afterAll(() => server?.stop());

  test.each(['md5', 'scram-sha-256', 'password'])('by %s', async (method) => {
    const wrong = await runCheck('hunter2', `by ${method}`);
    expect(wrong.finding.reason).toBe('credentials');
    expect(wrong.shown).not.toContain('hunter2');
    expect((await runCheck(undefined, `by ${method}`)).finding.reason).toBe('credentials');
    const good = await runCheck(right, `by ${method}`);
    expect(good.finding.reason).toBeUndefined();
    expect(good.shown).not.toContain('wörd');
  });

  test('a user who may not come in', async () => {
    expect((await runCheck('hunter2', 'nobody')).finding.reason).toBe('credentials');
  });
});
