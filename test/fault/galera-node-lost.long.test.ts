import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Finding } from '../../src/probes/probe.ts';
import {
  galeraSettings,
  hasGalera,
  type Mariadb,
  schemaStatements,
  startMariadb,
  usersStatements,
} from '../mariadb.ts';
import { checkStore, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

describe.skipIf(!hasGalera)('a Galera cluster of two nodes', () => {
  let first: Mariadb;
  let second: Mariadb;

  beforeAll(async () => {
    const [founder, joiner] = await galeraSettings(2);
    first = await startMariadb(...founder!);
    await pollUntil(
      () => first.sql("SHOW STATUS LIKE 'wsrep_ready'"),
      ([status]) => status?.Value === 'ON',
    );
    await first.sql(schemaStatements('svc_main'));
    await first.sql(usersStatements);
    second = await startMariadb(...joiner!);
  });
  afterAll(async () => {
    await second?.stop();
    await first?.stop();
  });

  const runCheck = ({ port }: Mariadb): Promise<Finding> =>
    checkStore(
      storeOn(port, {
        ...{ kind: 'mysql', user: 'full', password: 'swordfish' },
        databases: { persistence: 'svc_main' },
      }),
    );
  const checkOf = ({ details }: Finding, name: string) =>
    ((details?.checks ?? []) as { check: string; holds: unknown; found: string }[]).find(
      ({ check }) => check === name,
    );
  const checkUntil = (server: Mariadb, isSo: (finding: Finding) => boolean) =>
    pollUntil(() => runCheck(server), isSo);
  const isWhole = (finding: Finding) =>
    checkOf(finding, 'standbys')?.holds === true && checkOf(finding, 'nodes')?.holds === true;

  test('both are there: the checks hold on each, and they are one store by identity', async () => {
    const [one, other] = [await checkUntil(first, isWhole), await checkUntil(second, isWhole)];
    expect(checkOf(one, 'nodes')?.found).toBe('nodes: 2');
    expect(other.details!.schema).toBe('0.8');
    expect(one.details!.identity).toBe(other.details!.identity);
  });

  test('a node that is desynchronized, as a donor is, may lag behind', async () => {
    await second.sql('SET GLOBAL wsrep_desync = ON');
    const { reason, details } = await checkUntil(second, (finding) => !isWhole(finding));
    await second.sql('SET GLOBAL wsrep_desync = OFF');
    expect(reason).toBeUndefined();
    expect(checkOf({ msg: '', details }, 'standbys')).toMatchObject({
      holds: false,
      found: 'wsrep_cluster_status = Primary, wsrep_ready = ON, wsrep_local_state_comment = Donor/Desynced',
    });
    await checkUntil(second, isWhole);
  });

  test('a node that hangs takes the majority with it: the other refuses, says why, and comes back', async () => {
    second.signal('SIGSTOP');
    const { msg } = await checkUntil(first, ({ reason }) => reason === 'query_failed');
    expect(msg).toMatch(
      /^WSREP has not yet prepared node .*\(1047\); this node is outside the primary component/,
    );
    second.signal('SIGCONT');
    await checkUntil(first, isWhole);
    await checkUntil(second, isWhole);
  });

  test('a node that is stopped in good order is missing among those that are configured', async () => {
    second.signal('SIGTERM');
    const finding = await checkUntil(first, (found) => {
      return checkOf(found, 'nodes')?.holds === false && checkOf(found, 'standbys')?.holds === true;
    });
    expect(finding.reason).toBeUndefined();
    expect(checkOf(finding, 'nodes')?.found).toBe('nodes: 1 of 2 that wsrep_cluster_address names');
    expect(checkOf(finding, 'standbys')?.holds).toBe(true);
    expect(finding.failedChecks).toContain('nodes');
    await checkUntil(second, ({ reason }) => reason === 'refused');
    await second.restart();
    await checkUntil(first, isWhole);
  });
});
