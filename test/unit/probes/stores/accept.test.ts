import { expect, test } from 'vitest';
import { loadConfig } from '../../../../src/agent/config/load.ts';
import { storeCheckSeverities, storeChecks, storeChecksOf } from '../../../../src/core/check-severity.ts';
import { agentFile } from '../../config/agent-file.ts';

const load = (accept: string) =>
  loadConfig({
    file: agentFile(`services: {}
stores: [{name: main, kind: postgres, address: '127.0.0.1:5432', accept: ${accept}}]
`),
    env: {},
    cwd: '/',
  });
const messages = async (accept: string) =>
  (await load(accept)).faults.map(({ where, what, allowed }) => [where, what, allowed].join(' '));

test('accept is a map of check to reason', async () => {
  const { config } = await load('{data_checksums: the disks check}');
  expect(config!.stores[0]!.accept).toEqual({ data_checksums: 'the disks check' });
});

test.each([
  ['a check that does not exist', '{data_checksum: why}', /accept.*data_checksums/],
  [
    'a check of another kind of store',
    '{log_bin: why}',
    /accept\.log_bin.*not a check of kind postgres.*archive_mode/,
  ],
  ['no reason', '{data_checksums: ""}', /accept\.data_checksums.*no reason/],
  ['a blank reason', '{data_checksums: "  "}', /accept\.data_checksums.*no reason/],
  ['a list', '[data_checksums]', /stores\[0\]\.accept/],
])('accept refuses %s', async (_, accept, message) => {
  expect((await messages(accept)).join('\n')).toMatch(message);
});

test('every check has exactly one severity', () => {
  const bySeverity = storeCheckSeverities.flatMap((severity) => [...storeChecksOf(severity)]);
  expect(bySeverity.toSorted()).toEqual(storeChecks.toSorted());
  // A default PostgreSQL, MariaDB or Cassandra has no data at risk.
  const byDefault = ['archive_mode', 'archive_timeout', 'data_checksums', 'log_bin', 'incremental_backups'];
  expect(storeChecksOf('data_at_risk').filter((check) => byDefault.includes(check))).toEqual([]);
});
