import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { answerOf } from '../../../src/agent/recovery/check.ts';
import { createRestoreChecks } from '../../../src/agent/recovery/restore-checks.ts';
import { storeOn } from '../../store-probe.ts';

test('without a server one check says what to do, and the others do not repeat why', async () => {
  const place = mkdtempSync(join(tmpdir(), 'svc-agent-restore-'));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const backup = join(place, 'svc.sql');
  writeFileSync(
    backup,
    '--\n-- PostgreSQL database dump\n--\n\n-- Dumped from database version 15.18 (Debian 15.18-0)\n',
  );
  writeFileSync(`${backup}.globals.sql`, '');
  const listener = createServer();
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(() => void listener.close());
  const { port } = listener.address() as AddressInfo;
  const answers = async () => {
    const { copyNeeds, needs } = createRestoreChecks({
      ...{ store: storeOn(port), database: 'svc', backup, env: { PATH: process.env.PATH ?? '' } },
      restore: {
        commands: [['psql']],
        programs: [],
        ask: () => ['echo', '1'],
        safetyCopy: { what: 'a copy', commands: [] },
      } as never,
    });
    const all = [...copyNeeds(), ...needs()];
    const found: Record<string, string> = {};
    for (const each of all) found[each.id] = (await answerOf(each)).msg;
    return { found, neverForced: all.filter((each) => each.isNeverForced).map(({ id }) => id) };
  };
  expect((await answers()).found).toMatchObject({ server: `127.0.0.1:${port}` });
  listener.close();
  await once(listener, 'close');
  const { found, neverForced } = await answers();
  expect(found).toMatchObject({
    server: `nothing listens at 127.0.0.1:${port}: start a server of version 15.18 or newer there, create its users (${backup}.globals.sql), and run the same command again`,
    ...{ copy_space: 'the server does not answer', rights: 'the server does not answer' },
    versions: 'the server does not answer',
  });
  expect(new Set(neverForced)).toEqual(new Set(['server']));
});
