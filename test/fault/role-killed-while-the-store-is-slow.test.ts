import { expect, test } from 'vitest';
import { startLiveService } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';

test.skipIf(!hasPostgres)(
  'a role that is killed while the store is slow: the first sentence has both',
  async () => {
    const service = await startLiveService({ storeTimeout: '60s' });
    await service.setDoor('slow');
    const slow = await service.sees(
      'four roles cannot use it',
      ({ verdict: { problems } }) => problems.filter(({ kind }) => kind === 'role_down').length === 4,
    );
    expect(slow.verdict.sentence).toMatch(
      /^Roles \w+, \w+, \w+ and \w+ cannot use their store \(since \d\d:\d\d:\d\d UTC\)\.$/,
    );
    const killedMs = Date.now();
    service.signal('history', 'SIGKILL');
    const both = await service.sees('history is a cause of its own', ({ verdict: { problems } }) =>
      problems.some(
        ({ id, causedBy, what }) =>
          id === 'role_down/history' && causedBy === undefined && /refused/.test(what),
      ),
    );
    expect(both.verdict.sentence).toMatch(/roles \w+, \w+ and \w+ cannot use their store \(since/i);
    expect(both.verdict.sentence).toMatch(/role history is down \(since/i);
    const since = both.verdict.problems.find(({ id }) => id === 'role_down/history')!.since;
    // The role has been down since the store became slow: the end of its process changed only the reason.
    expect(Date.parse(since)).toBeLessThan(killedMs);

    await service.setDoor('open');
    const left = await service.sees(
      'history is left',
      ({ verdict: { cause, problems } }) => cause?.id === 'role_down/history' && problems.length === 1,
    );
    expect(left.verdict.sentence).toMatch(/^Role history is down \(since/);
    await service.begin('history');
    expect(await service.isOver('role_down/history')).toMatchObject({ start: since });
    expect(await service.isOver('role_down/worker')).toMatchObject({
      what: expect.stringMatching(/persistence/),
    });
  },
);
