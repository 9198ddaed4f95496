import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { init } from '../../src/agent/cli/init.ts';
import { loadConfig } from '../../src/agent/config/load.ts';
import { newFolder } from '../folder.ts';
import { freePort } from '../ports.ts';
import { hasPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { fakeIo } from '../unit/cli/fake-io.ts';

const password = 'p-4-svc_agent';
const databases = { persistence: 'svc', visibility: 'svc_visibility' };

/** What `init` writes for a service whose store is at this port, and the schema of the store as the agent reads it. */
async function initialized(port: number, env: Record<string, string>) {
  const folder = newFolder();
  const sql = (name: string) =>
    `{sql: {pluginName: postgres, databaseName: ${name}, connectAddr: "127.0.0.1:${port}", user: svc, password: hunter2}}`;
  writeFileSync(
    join(folder, 'service.yaml'),
    `persistence:
  defaultStore: one
  visibilityStore: two
  datastores: {one: ${sql(databases.persistence)}, two: ${sql(databases.visibility)}}
`,
  );
  const io = fakeIo(folder, env);
  expect(await init(['--service-config', 'service.yaml', '--out', 'agent.yaml'], io)).toBe(0);
  const { config, faults } = await loadConfig({ file: 'agent.yaml', env, cwd: folder });
  expect(faults).toEqual([]);
  const text = readFileSync(join(folder, 'agent.yaml'), 'utf8');
  expect(text).not.toContain(password);
  return { text, schema: config!.stores[0]!.schema };
}

describe.skipIf(!hasPostgres)('the schema versions that init writes', () => {
  let server: Postgres;
  beforeAll(async () => {
    server = await startPostgres();
    for (const name of Object.values(databases)) await server.query(`CREATE DATABASE ${name}`);
    const table = 'CREATE TABLE schema_version (db_name text, curr_version text)';
    await server.query(`${table}; INSERT INTO schema_version VALUES ('svc', '0.8')`, 'svc');
    await server.query(table, 'svc_visibility');
    await server.query("INSERT INTO schema_version VALUES ('svc_visibility', '0.10')", 'svc_visibility');
    await server.query(`CREATE ROLE svc_agent LOGIN PASSWORD '${password}'`);
    for (const name of Object.values(databases))
      await server.query('GRANT SELECT ON schema_version TO svc_agent', name);
  });
  afterAll(() => server?.stop());

  const env = { SVC_AGENT_DB_PASSWORD: password };

  test('are those that the store has', async () => {
    const { schema } = await initialized(server.port, env);
    expect(schema).toMatchObject({ persistence: '0.8', visibility: '0.10' });
  });

  test('a schema that is not there yet is said, and the other is written', async () => {
    await server.query('DELETE FROM schema_version', 'svc_visibility');
    onTestFinished(async () => {
      await server.query("INSERT INTO schema_version VALUES ('svc_visibility', '0.10')", 'svc_visibility');
    });
    const { text, schema } = await initialized(server.port, env);
    expect(schema).toMatchObject({ persistence: '0.8' });
    expect(schema.visibility).toBeUndefined();
    expect(text).toContain('# schema: not all filled in: schema_version has no row for svc_visibility\n');
  });

  test('without the password no store is asked', async () => {
    const { text, schema } = await initialized(server.port, {});
    expect([schema.persistence, schema.visibility]).toEqual([undefined, undefined]);
    expect(text).toContain('# schema: not all filled in: SVC_AGENT_DB_PASSWORD is not set\n');
  });

  test('a store that does not answer is said', async () => {
    const { text, schema } = await initialized(await freePort(), env);
    expect(schema.persistence).toBeUndefined();
    expect(text).toMatch(/# schema: not all filled in: .*ECONNREFUSED/);
  });
});
