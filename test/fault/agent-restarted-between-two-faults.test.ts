import { expect, test } from 'vitest';
import { recovered, startLiveService } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';

test.skipIf(!hasPostgres).each(['SIGTERM', 'SIGKILL'] as const)(
  'a role is gone, the agent ends by %s and starts again, then the store is gone: two causes, each with its own start',
  async (signal) => {
    const service = await startLiveService();
    service.signal('worker', 'SIGKILL');
    const first = await service.sees(
      'the worker is down',
      ({ verdict: { cause } }) => cause?.id === 'role_down/worker',
    );
    const { since } = first.verdict.cause!;
    await service.sees('it is in the state', ({ state }) => (state.lastCommitAt ?? '') > first.now);
    await service.restartAgent(signal);
    const again = await service.sees(
      'the worker is still down',
      ({ verdict: { cause } }) => cause?.id === 'role_down/worker',
    );
    expect(again.verdict.cause?.since).toBe(since);
    expect(again.incidents).toEqual([]);

    const shutMs = Date.now();
    await service.setDoor('shut');
    const both = await service.sees(
      'three roles miss their store',
      ({ verdict: { problems } }) =>
        problems.filter(({ kind, causedBy }) => kind === 'role_down' && causedBy).length === 3,
    );
    const byId = new Map(both.verdict.problems.map((problem) => [problem.id, problem]));
    const store = byId.get('store_down/main/persistence')!;
    expect(store.consequences.toSorted()).toEqual([
      'role_down/frontend',
      'role_down/history',
      'role_down/matching',
    ]);
    expect(Date.parse(store.since)).toBeGreaterThanOrEqual(shutMs - 1_000);
    // The process was gone before the outage of the store, which therefore did not cause it.
    const worker = byId.get('role_down/worker')!;
    expect([worker.causedBy, worker.since]).toEqual([undefined, since]);

    await service.setDoor('open');
    await service.begin('worker');
    const ended = await service.isOver('role_down/worker');
    const over = await service.isOver('store_down/main/persistence');
    expect(ended).toMatchObject({ start: since, over: recovered('worker') });
    expect(over.start).toBe(store.since);
    const { incidents } = await service.status();
    expect(incidents.map(({ id }) => id).sort()).toEqual(['role_down/worker', 'store_down/main/persistence']);
  },
);
