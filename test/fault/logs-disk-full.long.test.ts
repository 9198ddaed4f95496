import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { available } from '../installed.ts';
import { startLiveService } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';
import { canMount, tmpfs } from './state/mount.ts';

test.skipIf(!hasPostgres || !available('the right to mount a file system', canMount()))(
  'a full disk under the logs is the cause, and no outage',
  async () => {
    const { directory } = tmpfs('1m');
    const service = await startLiveService({ logs: directory });
    const filler = join(directory, 'filler');
    for (let bytes = 1 << 20; bytes >= 1; bytes >>= 1)
      try {
        for (;;) writeFileSync(filler, Buffer.alloc(bytes), { flag: 'a' });
      } catch {}
    const { verdict, startedAt, now } = await service.sees(
      'four logs cannot be written',
      ({ verdict: { problems } }) => problems.filter(({ kind }) => kind === 'log_disk_full').length === 4,
    );
    expect(verdict.level).toBe('warning');
    expect(verdict.headline).toMatch(/^(?:4 log files|Log files .*) cannot be written$/);
    expect(verdict.problems).toHaveLength(4);
    for (const { since, fix } of verdict.problems) {
      expect([startedAt <= since, since <= now]).toEqual([true, true]);
      expect(fix).toBe(`free space: df ${directory}`);
    }
    rmSync(filler);
    const { id, since } = verdict.problems[0]!;
    expect(await service.isOver(id)).toMatchObject({ start: since, cause: 'log_disk_full' });
  },
);
