import { expect, test } from 'vitest';
import { startLiveService } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';

test.skipIf(!hasPostgres)(
  'a role that is stopped in the middle of its work is the cause, since then',
  async () => {
    const service = await startLiveService();
    const stoppedMs = Date.now();
    service.signal('history', 'SIGSTOP');
    const { verdict } = await service.sees(
      'history is down',
      ({ verdict: { cause } }) => cause?.kind === 'role_down',
    );
    expect(verdict.sentence).toMatch(/^Role history is down \(since \d\d:\d\d:\d\d UTC\)\.$/);
    expect(verdict.cause).toMatchObject({
      subject: 'history',
      what: expect.stringMatching(/no byte of the response arrived in time/),
    });
    const since = verdict.cause!.since;
    expect(Date.parse(since)).toBeGreaterThanOrEqual(stoppedMs);
    service.signal('history', 'SIGCONT');
    expect(await service.isOver('role_down/history')).toMatchObject({
      start: since,
      over: 'role history recovered',
    });
  },
);
