import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { checkStore, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

test.skipIf(!hasPostgres)('a server that recovers is starting, not shutting down', async () => {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  // The port is another one after a restart.
  const check = () => checkStore(storeOn(server.port, { user: 'postgres' }));
  const { data_directory: data } = (await server.query('SHOW data_directory')).rows[0];
  await server.disconnect();
  // The recovery waits for each file that it asks the archive for.
  const back = server.restart(['hot_standby=off', 'restore_command=sleep 2; false'], () =>
    writeFileSync(join(data, 'recovery.signal'), ''),
  );
  const finding = await pollUntil(check, ({ reason }) => reason === 'starting');
  expect(finding.msg).toMatch(
    /^the database system is (?:starting up|not yet accepting|not accepting).*\(57P03\)$/,
  );
  await back;
  expect((await check()).reason).toBeUndefined();
});
