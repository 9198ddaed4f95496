import { expect, test } from 'vitest';
import { hasCassandra, startCassandra, superuser } from '../cassandra.ts';
import { pollCassandra } from '../poll-cassandra.ts';

test.skipIf(!hasCassandra)(
  'users that cannot be read because nodes are missing are not a wrong password',
  async () => {
    const server = await startCassandra({ authenticates: true });
    const { username: user, password } = superuser;
    try {
      expect((await pollCassandra({ port: server.port, user, password })).fault).toBeUndefined();
      expect((await pollCassandra({ port: server.port, user, password: 'no' })).fault).toMatchObject({
        reason: 'credentials',
      });
      // With three copies on one node, no majority of them can answer.
      await server.run(
        "ALTER KEYSPACE system_auth WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 3}",
      );
      expect((await pollCassandra({ port: server.port, user, password })).fault).toMatchObject({
        reason: 'query_failed',
        msg: expect.stringContaining('the nodes that hold system_auth do not answer'),
      });
    } finally {
      await server.remove();
    }
  },
);
