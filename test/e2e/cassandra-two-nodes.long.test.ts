import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import type { Probe, ProbeRow } from '../../src/probes/probe.ts';
import { planStores } from '../../src/probes/stores/stores.ts';
import { type Cassandra, hasCassandra, startCassandra } from '../cassandra.ts';
import { newFolder } from '../folder.ts';
import { bench, storeOn } from '../store-probe.ts';
import { until } from '../until.ts';
import { command } from './process.ts';

// A real cluster of two nodes on loopback: what one node reports about the other, and what each agent reports about its own node.

const keyspace = (name: string, replication: string) =>
  `CREATE KEYSPACE ${name} WITH replication = {'class': ${replication}}`;

describe.skipIf(!hasCassandra)('two nodes of Cassandra', () => {
  const place = newFolder(afterAll);
  const nodes: Cassandra[] = [];
  const remembered = new Map<string, unknown>();
  beforeAll(async () => {
    const one = await startCassandra();
    nodes.push(one);
    const options = { joins: { of: one, host: '127.0.0.2' }, settings: '\nauto_bootstrap: false\n' };
    nodes.push(await startCassandra(options));
    await one.run(
      keyspace('svc', `'SimpleStrategy', 'replication_factor': 2`),
      keyspace('above', `'SimpleStrategy', 'replication_factor': 3`),
      keyspace('equal', `'NetworkTopologyStrategy', 'datacenter1': 2`),
      keyspace('topology', `'NetworkTopologyStrategy', 'datacenter1': 3`),
      'CREATE TABLE svc.executions (id int PRIMARY KEY, state text)',
      ...[1, 2, 3, 4].map((id) => `INSERT INTO svc.executions (id, state) VALUES (${id}, 'open')`),
    );
  });
  afterAll(async () => {
    for (const probe of probes.values()) await probe.close?.();
    for (const node of nodes) await node.remove();
  });

  const deps = { ...bench().deps, clock: systemClock };
  const probes = new Map<string, Probe>();
  /** The probe of a keyspace through a node, which compares one poll with those before it. */
  async function probeOf({ host, port }: Cassandra, persistence: string): Promise<Probe> {
    const known = probes.get(host + persistence);
    if (known) return known;
    const options = storeOn(port, {
      ...{ kind: 'widecolumn', address: `${host}:${port}`, databases: { persistence } },
    });
    const [row] = planStores({ stores: [options] }) as [ProbeRow];
    const probe = await row.open(deps);
    probes.set(host + persistence, probe);
    return probe;
  }

  /** One check through a node. What is remembered belongs to the store, whichever node answers. */
  async function through(node: Cassandra, persistence = 'svc') {
    const probe = await probeOf(node, persistence);
    const finding = await probe.check(AbortSignal.timeout(30_000), remembered.get(persistence));
    remembered.set(persistence, finding.remember);
    const checks = (finding.details?.checks ?? []) as { check: string; holds: unknown; found: string }[];
    return {
      ...finding,
      check: (name: string) => checks.find(({ check }) => check === name),
    };
  }

  test('either answers for the cluster: its identity, its schema and the number of its nodes', async () => {
    // The second node adopts the schema after a while, and each learns the other's version by gossip.
    await until('both nodes see one schema', async () => {
      const seen = [await through(nodes[0]!), await through(nodes[1]!)];
      const isOne = ({ check }: (typeof seen)[0]) =>
        check('schema_agreement')?.found === 'schema versions: 1, on nodes: 2';
      return seen.every(isOne);
    });
    const [one, other] = [await through(nodes[0]!), await through(nodes[1]!)];
    expect(other.details!.node).not.toBe(one.details!.node);
    for (const { check, details } of [one, other, await through(nodes[0]!)]) {
      expect(details).toMatchObject({ cluster: 'svc-agent-test', peers: 1 });
      expect([check('identity'), check('uptime')]).not.toContainEqual(
        expect.objectContaining({ holds: false }),
      );
      expect(check('schema_agreement')).toMatchObject({ holds: true });
    }
  });

  test.each([
    ['svc', 'replication_factor = 2 (SimpleStrategy)', false],
    ['above', 'replication_factor = 3 on 2 nodes (SimpleStrategy)', false],
    ['equal', 'replication_factor = 2 in datacenter1 (NetworkTopologyStrategy)', true],
    ['topology', 'replication_factor = 3 in datacenter1 on 2 nodes (NetworkTopologyStrategy)', true],
  ])('copies of %s', async (name, found, isTopology) => {
    const { check } = await through(nodes[0]!, name);
    expect(check('replication_factor')).toMatchObject({ holds: false, found });
    expect(check('replication_strategy')).toMatchObject({ holds: isTopology });
  });

  test('a snapshot of one node is none of the other', () => {
    const judged = (node: Cassandra) => {
      const file = join(place, `${node.host}.yaml`);
      const config = {
        stateDirectory: join(place, node.host),
        stores: [
          {
            ...{ name: 'wide', kind: 'widecolumn', address: `${node.host}:${node.port}` },
            databases: { persistence: 'svc' },
          },
        ],
        backups: [
          {
            ...{ name: 'nightly', store: 'wide', database: 'persistence', type: 'full' },
            ...{ source: { snapshot: { dataDirectory: node.data, keyspace: 'svc' } } },
            integrity: { level: 'full' },
          },
        ],
      };
      writeFileSync(file, JSON.stringify(config));
      const { stdout } = command(['probe', 'backup', 'recovery', '-c', file, '--json']);
      const found = JSON.parse(stdout) as { name: string; ok: boolean; reason?: string }[];
      return Object.fromEntries(found.map(({ name, ok, reason }) => [name, ok ? 'ok' : reason]));
    };
    const snapshot = (node: Cassandra) => {
      const [program, ...args] = node.nodetool('snapshot', '-t', 'nightly-1', 'svc');
      execFileSync(program!, args);
    };
    snapshot(nodes[0]!);
    expect(judged(nodes[0]!)).toEqual({ 'backup/nightly': 'ok', 'recovery/wide/persistence': 'ok' });
    expect(judged(nodes[1]!)).toEqual({
      // No backup is due yet.
      'backup/nightly': 'ok',
      'recovery/wide/persistence': 'no_backup',
    });
    snapshot(nodes[1]!);
    const both = judged(nodes[1]!);
    expect(both['backup/nightly']).toBe('ok');
    // As long as no row has reached this node, its files do not show which tables a snapshot must have.
    expect(['ok', 'recovery_point_unknown']).toContain(both['recovery/wide/persistence']);
  });

  test('a node that dies is found by the other', async () => {
    const checked = (holds: boolean) =>
      until(`nodes: ${holds}`, async () => {
        const nodesCheck = (await through(nodes[0]!)).check('nodes');
        return nodesCheck?.holds === holds && nodesCheck;
      });
    expect(await checked(true)).toMatchObject({ found: 'nodes: 2, all up' });
    await nodes[1]!.end('SIGKILL');
    expect((await checked(false)).found).toMatch(/^down: 1 of 2 nodes, \/?127\.0\.0\.2/);
    // The store itself still works.
    expect((await through(nodes[0]!)).reason).toBeUndefined();
  });
});
