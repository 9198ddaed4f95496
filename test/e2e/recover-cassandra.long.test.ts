import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cassandra, hasCassandra, startCassandra } from '../cassandra.ts';
import { command, folder } from './process.ts';
import { recoverMain } from './recover-round.ts';
import { type Role, startRole } from './role.ts';

// The full round on a real Cassandra, through the built program: a snapshot by nodetool, the tables emptied, recover
// with the command that `svc-agent backup plan` prints, and the rows are back.

const shellQuoted = (words: readonly string[]) =>
  words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');

describe.skipIf(!hasCassandra)('database-corruption on Cassandra', () => {
  let server: Cassandra;
  let role: Role;
  const place = folder();
  const copies = join(place.path, 'copies');
  const file = join(place.path, 'agent.yaml');
  const tables = ['executions', 'tasks'];
  const backupScript = join(place.path, 'backup.sh');
  const restoreScript = join(place.path, 'restore.sh');

  beforeAll(async () => {
    role = await startRole(place.path);
    server = await startCassandra();
    await server.run(
      "CREATE KEYSPACE svc WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
      'CREATE TABLE svc.schema_version (keyspace_name text PRIMARY KEY, curr_version text)',
      "INSERT INTO svc.schema_version (keyspace_name, curr_version) VALUES ('svc', '0.8')",
      ...tables.flatMap((name) => [
        `CREATE TABLE svc.${name} (i int PRIMARY KEY, state text)`,
        ...Array.from(
          { length: 50 },
          (_, i) => `INSERT INTO svc.${name} (i, state) VALUES (${i}, 'state ${i}')`,
        ),
      ]),
    );
    const nodetool = (...args: string[]) => shellQuoted(server.nodetool(...args));
    mkdirSync(copies);
    // The snapshot stays on the node as evidence; its copy is what an operator keeps elsewhere.
    writeFileSync(
      backupScript,
      `set -eu
${nodetool('snapshot', '--tag', 'nightly-1', 'svc')}
for folder in ${server.data}/svc/*/snapshots/nightly-1; do
  table=$(basename "$(dirname "$(dirname "$folder")")")
  cp -r "$folder" "${copies}/\${table%%-*}"
done
`,
    );
    writeFileSync(
      restoreScript,
      `set -eu
for folder in ${copies}/*; do
  ${nodetool('import', '--copy-data', 'svc')} "$(basename "$folder")" "$folder"
done
`,
    );
    writeFileSync(
      file,
      `stateDirectory: ${join(place.path, 'state')}
roles: [history]
services: {history: {health: '${role.health}'}}
stores:
  - {name: main, kind: widecolumn, address: '127.0.0.1:${server.port}', databases: {persistence: svc}, schema: {persistence: '0.8'}}
backups:
  - name: nightly
    store: main
    database: persistence
    type: full
    source: {snapshot: {dataDirectory: ${server.data}, keyspace: svc}}
    integrity: {level: full}
recovery:
  allowExecute: true
  commands:
    stopServices: [${role.stop}]
    startServices: [${role.start}]
    safetyCopy: ${JSON.stringify(server.nodetool('snapshot', '--tag', 'before-recovery', 'svc'))}
    restore: [bash, ${restoreScript}]
`,
    );
  }, 300_000);
  afterAll(async () => {
    await server?.remove();
    role?.remove();
    place.remove();
  });

  const recover = () => recoverMain(file);

  test('what was destroyed is back as it was, the schema is proved, and the drill is recorded', async () => {
    const whole = await server.rows('SELECT i, state FROM svc.executions');
    expect(whole).toHaveLength(50);
    const taken = command(['backup', 'run', '--job', 'nightly', '-c', file, '--', 'bash', backupScript]);
    expect(taken.status, taken.stderr + taken.stdout).toBe(0);

    await server.run(...[...tables, 'schema_version'].map((name) => `TRUNCATE svc.${name}`));
    expect(await server.rows('SELECT i FROM svc.executions')).toEqual([]);
    const { status, output } = await recover();
    expect({ status, output }).toMatchObject({ status: 0 });
    const sorted = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).sort();
    expect(sorted(await server.rows('SELECT i, state FROM svc.executions'))).toEqual(sorted(whole));
    expect(await server.rows('SELECT i FROM svc.tasks')).toHaveLength(50);
    expect(output).toMatch(/ok +the schema has the version that the service needs/);
    expect(await role.isUp()).toBe(true);
  });
});
