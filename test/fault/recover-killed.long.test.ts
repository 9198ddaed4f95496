import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { hasMariadb } from '../mariadb.ts';
import { hasPostgres } from '../postgres.ts';
import { killedAt } from './recover-killed/killed.ts';
import { kinds, mariadbDump } from './recover-killed/stages.ts';

// This is a selection of recover-killed.nightly.test.ts.

test.skipIf(!hasPostgres)('database-corruption on PostgreSQL, killed while it restores', async () => {
  const stage = await kinds['PostgreSQL, a dump']('database-corruption');
  const whole = await stage.content();
  await killedAt(stage, whole, { line: 11, withCommand: true });
});

test.skipIf(!hasPostgres)('cluster-loss on PostgreSQL, killed before the services are deployed', async () => {
  const stage = await kinds['PostgreSQL, a dump']('cluster-loss');
  await killedAt(stage, await stage.content(), { line: 16 });
});

// The jobs of the plan continue: half a database is the newest dump, and the statements of the restore are in the log.
test.skipIf(!hasMariadb).each([[[]], [['--restart']]])(
  'database-corruption on MariaDB, killed with half of the dump loaded, then run again with %j',
  async (args) => {
    const stage = await mariadbDump('database-corruption');
    const whole = await stage.content();
    const [reached, shim] = [join(stage.place, 'reached'), join(stage.bin, 'gzip')];
    const half = `/usr/bin/gzip "$@" | head -c 40000; touch ${reached}; exec sleep 600`;
    writeFileSync(
      shim,
      `#!/bin/sh\ncase "$SVC_AGENT_RECOVERY_COMMAND $*" in ?*-?*" --decompress"*) ${half} ;; esac\nexec /usr/bin/gzip "$@"\n`,
      { mode: 0o755 },
    );
    const env = { PATH: `${stage.bin}:${process.env.PATH}` };
    const point = { line: 12, withCommand: true, reached: () => existsSync(reached), args };
    await killedAt(stage, whole, point, env);
  },
);
