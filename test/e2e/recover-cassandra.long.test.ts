import { expect, test } from 'vitest';
import { hasCassandra } from '../cassandra.ts';
import { startRecover } from '../fault/recover-killed/killed.ts';
import { kinds } from '../fault/recover-killed/stages.ts';

// The whole procedure on a real Cassandra, through the built program: a snapshot by nodetool, the tables emptied, recover, and
// the rows are back.
test.skipIf(!hasCassandra)(
  'database-corruption on Cassandra: what was destroyed is back as it was',
  async () => {
    const stage = await kinds['Cassandra, a snapshot']('database-corruption');
    const whole = await stage.content();
    await stage.damage();
    expect(await stage.content()).toEqual([[], []]);
    const run = startRecover(stage, []);
    expect(await run.ended, run.output()).toBe(0);
    expect(await stage.content()).toEqual(whole);
    expect(run.output()).toMatch(/ok +the schema has the version that the service needs/);
    expect(await stage.role.isUp()).toBe(true);
  },
);
