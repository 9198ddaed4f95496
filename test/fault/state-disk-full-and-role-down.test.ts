import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { available } from '../installed.ts';
import { recovered, startLiveService } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';
import { canMount, tmpfs } from './state/mount.ts';

/** Fills a file system to its last byte. */
const fill = (file: string) => {
  for (let bytes = 1 << 20; bytes >= 1; bytes >>= 1)
    try {
      for (;;) writeFileSync(file, Buffer.alloc(bytes), { flag: 'a' });
    } catch {}
};

test.skipIf(!hasPostgres || !available('the right to mount a file system', canMount()))(
  'a full disk under the state, and a role that is down: the role is the cause, and the state is beside it',
  async () => {
    const { directory } = tmpfs('2m');
    const service = await startLiveService({ state: join(directory, 'state') });
    const filler = join(directory, 'filler');
    fill(filler);
    const full = await service.sees(
      'the state cannot be written',
      ({ verdict: { cause } }) => cause?.kind === 'state',
    );
    expect(full.verdict.sentence).toMatch(/^The state cannot be written \(since \d\d:\d\d:\d\d UTC\)\.$/);
    expect(full.verdict.cause?.what).toMatch(
      new RegExp(`(?:open|write) fails in ${directory}/state: no space left on device \\(ENOSPC\\)$`),
    );
    const stateSince = full.verdict.cause!.since;
    // The problem began when the state was last written.
    expect([full.startedAt <= stateSince, stateSince <= full.now]).toEqual([true, true]);

    service.signal('worker', 'SIGKILL');
    const both = await service.sees(
      'the worker is down',
      ({ verdict: { cause } }) => cause?.kind === 'role_down',
    );
    expect(both.verdict.sentence).toMatch(
      /^Role worker is down \(since \d\d:\d\d:\d\d UTC\) and the state cannot be written \(since \d\d:\d\d:\d\d UTC\)\.$/,
    );
    await service.begin('worker');
    const left = await service.sees('the state is left', ({ verdict: { cause } }) => cause?.kind === 'state');
    expect(left.verdict.cause?.since).toBe(stateSince);
    rmSync(filler);
    expect(await service.isOver('state/')).toMatchObject({
      start: stateSince,
      over: 'the state can be written again',
    });
    expect(await service.isOver('role_down/worker')).toMatchObject({ over: recovered('worker') });
  },
);
