import { expect, test } from 'vitest';
import { startLiveService } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';

test.skipIf(!hasPostgres)(
  'a store that takes connections and never answers is the cause of four roles',
  async () => {
    const service = await startLiveService();
    const silentMs = Date.now();
    await service.setDoor('silent');
    const { verdict } = await service.sees(
      'the store is the cause of all',
      ({ verdict: { problems } }) =>
        problems[0]?.kind === 'store_down' &&
        problems[0].consequences.filter((id) => id.startsWith('role_down/')).length === 4,
    );
    expect(verdict.sentence).toMatch(
      /^Store main does not answer \(since \d\d:\d\d:\d\d UTC\); 4 roles are down because of it\.$/,
    );
    const since = verdict.cause!.since;
    expect(Date.parse(since)).toBeGreaterThanOrEqual(silentMs);
    await service.setDoor('open');
    expect(await service.isOver('store_down/main/persistence')).toMatchObject({
      ...{ start: since, consequences: '4 roles' },
    });
    // The effects of the store's outage are no incidents of their own.
    const { incidents } = await service.status();
    expect(incidents.filter(({ cause }) => cause.startsWith('role_'))).toEqual([]);
  },
);
