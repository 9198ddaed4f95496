import { expect, test } from 'vitest';
import { recovered, startLiveService } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';

test.skipIf(!hasPostgres)(
  'a role that is killed is the cause, since then, until it is started again',
  async () => {
    const service = await startLiveService();
    const killedMs = Date.now();
    service.signal('matching', 'SIGKILL');
    const { verdict } = await service.sees(
      'matching is down',
      ({ verdict: { cause } }) => cause?.kind === 'role_down',
    );
    expect(verdict.sentence).toMatch(/^Role matching is down \(since \d\d:\d\d:\d\d UTC\)\.$/);
    expect(verdict.cause?.what).toMatch(/^role matching is down: connection refused by 127\.0\.0\.1:\d+$/);
    const since = verdict.cause!.since;
    expect(Date.parse(since)).toBeGreaterThanOrEqual(killedMs);
    await service.begin('matching');
    expect(await service.isOver('role_down/matching')).toMatchObject({
      start: since,
      over: recovered('matching'),
    });
  },
);
