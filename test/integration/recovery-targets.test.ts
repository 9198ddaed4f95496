import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerOf } from '../../src/agent/recovery/check.ts';
import { createGuard } from '../../src/agent/recovery/guard.ts';
import { restoreTarget } from '../../src/agent/recovery/target.ts';
import { findWalEnd } from '../../src/agent/recovery/wal-target.ts';
import { newFolder } from '../folder.ts';
import { connectionTo, hasPostgres, type Postgres, postgresProgram, startArchiving } from '../postgres.ts';
import { storeOn } from '../store-probe.ts';
import { until } from '../until.ts';

// Files that PostgreSQL itself writes: a base backup, and an archive with a restore point between two transactions.
describe.skipIf(!hasPostgres)('where a restore from a base backup may end', () => {
  let folder: string;
  let archive: string;
  let base: string;
  let server: Postgres;
  let begunMs: number;
  let segments: string[];
  let point: Readonly<
    Record<'before' | 'first' | 'afterFirst' | 'next' | 'between' | 'second' | 'after', string>
  >;

  const moment = async () => {
    const { rows } = await server.query("SELECT date_trunc('milliseconds', clock_timestamp()) AS at");
    const at = (rows[0].at as Date).getTime() + 2;
    await until('the moment has passed', async () => {
      const passed = await server.query('SELECT clock_timestamp() AS at');
      return passed.rows[0].at.getTime() > at + 2;
    });
    return new Date(at).toISOString();
  };
  const insert = async () =>
    (await server.query('INSERT INTO executions VALUES (1) RETURNING pg_current_xact_id()::text AS xid'))
      .rows[0].xid as string;

  beforeAll(async () => {
    ({ folder, archive, server } = await startArchiving({ initdb: ['--wal-segsize=1'] }));
    await server.query('CREATE TABLE executions (i int)');
    base = join(folder, 'base');
    postgresProgram('pg_basebackup', [
      ...connectionTo(server),
      '-D',
      base,
      '-X',
      'none',
      '--checkpoint=fast',
    ]);
    // The label of a backup has its time in whole seconds.
    const label = JSON.parse(readFileSync(join(base, 'backup_manifest'), 'utf8')).Files.find(
      ({ Path }: { Path: string }) => Path === 'backup_label',
    )['Last-Modified'];
    begunMs = Date.parse(label);
    await until('the second of the backup is over', () => Date.now() >= begunMs + 1000);
    const before = await moment();
    const first = await insert();
    const { rows } = await server.query('SELECT pg_current_wal_insert_lsn() AS lsn');
    const next = await insert();
    await server.archiveWal();
    const between = await moment();
    await server.query("SELECT pg_create_restore_point('before the release')");
    const second = await insert();
    await server.archiveWal();
    point = { before, first, afterFirst: rows[0].lsn, next, between, second, after: await moment() };
    segments = readdirSync(archive)
      .filter((name) => /^[0-9A-F]{24}$/.test(name))
      .sort();
  });
  afterAll(async () => {
    await server?.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  /** A copy of the archive in which a test changes something. */
  function copied(change: (place: string) => void = () => {}): string {
    const place = newFolder();
    for (const name of readdirSync(archive)) copyFileSync(join(archive, name), join(place, name));
    change(place);
    return place;
  }
  const at = (time: string) => ({ time: new Date(time) });

  test('a time, a transaction and a restore point of the log', async () => {
    const place = copied();
    const ends = (...targets: Parameters<typeof findWalEnd>[2][]) =>
      Promise.all(targets.map((target) => findWalEnd(base, place, target)));
    expect(
      await ends(
        at(point.before),
        at(point.between),
        { xid: point.first },
        { xid: point.second },
        { name: 'before the release' },
        { timeline: 1 },
      ),
    ).toEqual([{}, {}, {}, {}, {}, {}]);
    // There is nothing after it to leave out.
    expect(await ends(at(point.after))).toEqual([{ isWhole: true }]);
  });

  test('what is before the backup, or not in the log', async () => {
    const place = copied();
    const refusal = async (target: Parameters<typeof findWalEnd>[2]) =>
      (await findWalEnd(base, place, target)).refused;
    const begun = (when: string) =>
      `the backup began at ${new Date(begunMs).toISOString()}, ${when}: name an older one with --backup`;
    const times = [begunMs - 1, begunMs, begunMs + 999].map((ms) => at(new Date(ms).toISOString()));
    expect([await refusal(times[0]!), await refusal(times[1]!), await refusal(times[2]!)]).toEqual([
      begun('after --until'),
      begun('in the same second as --until'),
      begun('in the same second as --until'),
    ]);
    expect(String(await refusal(at(new Date(begunMs + 1000).toISOString())))).not.toContain(
      'the backup began',
    );
    const next = segments.at(-1)!.slice(0, -8);
    expect(await refusal({ xid: '4000000000' })).toMatch(
      new RegExp(
        `^the log behind the backup has no transaction 4000000000: it has transactions up to ${point.after.slice(0, 10)}T.*Z, then ${next}[0-9A-F]{8} is not there$`,
      ),
    );
    expect(await refusal({ name: 'never' })).toMatch(
      /^the log behind the backup has no restore point never: it has/,
    );
    expect(await refusal({ timeline: 7 })).toBe('the log has no timeline 7; it has 1');
  });

  test('a gap, and a damaged segment, end the log; a compressed one, and one in its folder, do not', async () => {
    const last = segments.at(-1)!;
    const first = segments.find(
      (name) => readFileSync(join(archive, name)).length > 0 && name > segments[0]!,
    )!;
    const refusal = async (change: (place: string) => void) =>
      (await findWalEnd(base, copied(change), { xid: point.second })).refused;
    expect(await refusal((place) => rmSync(join(place, last)))).toContain(`, then ${last} is not there`);
    const damaged = Buffer.from(readFileSync(join(archive, last)));
    damaged.fill(0xff, 60, 200);
    expect(await refusal((place) => writeFileSync(join(place, last), damaged))).toContain(`, then ${last}: `);
    const packed = (place: string) => {
      writeFileSync(join(place, `${last}.gz`), gzipSync(readFileSync(join(archive, last))));
      rmSync(join(place, last));
    };
    const foldered = (place: string) => {
      mkdirSync(join(place, first.slice(0, 16)), { recursive: true });
      copyFileSync(join(archive, first), join(place, first.slice(0, 16), first));
      rmSync(join(place, first));
    };
    expect([await refusal(packed), await refusal(foldered)]).toEqual([undefined, undefined]);
    expect(
      await refusal((place) => readdirSync(place).forEach((name) => void rmSync(join(place, name)))),
    ).toMatch(/no transaction \d+: it has no transaction, then [0-9A-F]{24} is not there$/);
  });

  test('a later timeline is followed from where it begins, unless an older one is named', async () => {
    const last = segments.at(-1)!;
    const [high, low] = [last.slice(8, 16), last.slice(16)].map((hex) => Number.parseInt(hex, 16)) as [
      number,
      number,
    ];
    const beginning = `${high.toString(16).toUpperCase()}/${(low << 20).toString(16).toUpperCase()}`;
    const forked = (from: string) =>
      copied((place) =>
        writeFileSync(join(place, '00000002.history'), `1\t${from}\tno recovery target specified\n`),
      );
    const refusal = async (place: string, target: Parameters<typeof findWalEnd>[2]) =>
      (await findWalEnd(base, place, target)).refused;
    const place = forked(beginning);
    const second = { xid: point.second };
    expect(await refusal(place, second)).toContain(`, then 00000002${last.slice(8)} is not there`);
    expect(await refusal(place, { xid: point.first })).toBeUndefined();
    expect(await refusal(place, { ...second, timeline: 1 })).toBeUndefined();
    expect(await refusal(place, { timeline: 7 })).toBe('the log has no timeline 7; it has 1, 2');
    // The backup is no part of a timeline that left this one before it.
    expect(await refusal(forked('0/100'), second)).toMatch(/timeline 2/);
  });

  /** A copy of the backup's manifest in which something is changed. */
  function manifestWith(what: RegExp, instead: string): string {
    const place = newFolder();
    const text = readFileSync(join(base, 'backup_manifest'), 'utf8').replace(what, instead);
    const body = text.slice(0, text.indexOf('"Manifest-Checksum"'));
    const digest = createHash('sha256').update(body).digest('hex');
    writeFileSync(join(place, 'backup_manifest'), `${body}"Manifest-Checksum": "${digest}"}\n`);
    return place;
  }

  test('a manifest without its range of the log', async () => {
    const place = manifestWith(/"WAL-Ranges": \[[^\]]*\]/, '"WAL-Ranges": []');
    expect(await findWalEnd(place, copied(), { timeline: 1 })).toEqual({
      refused: 'the manifest of the backup does not say which log it needs',
    });
  });

  test('a target that lies within the backup; the first commit after a time counts', async () => {
    // A backup that took until after the first transaction, but not until the one after it.
    const place = manifestWith(/"End-LSN": "[^"]*"/, `"End-LSN": "${point.afterFirst}"`);
    const refusal = async (target: Parameters<typeof findWalEnd>[2]) =>
      (await findWalEnd(place, copied(), target)).refused;
    const refused = 'lies before the end of the backup: name an older one with --backup';
    expect(await refusal({ xid: point.first })).toBe(`transaction ${point.first} ${refused}`);
    expect(await refusal(at(point.before))).toBe(`--until ${refused}`);
    expect([await refusal({ xid: point.next }), await refusal(at(point.between))]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test('the timelines of the log are named in their order', async () => {
    const place = manifestWith(/"Timeline": 1/, '"Timeline": 3');
    const archived = copied((folder) => {
      for (const timeline of [2, 3, 10])
        writeFileSync(
          join(folder, `${timeline.toString(16).toUpperCase().padStart(8, '0')}.history`),
          '1\t0/100\tno recovery target specified\n',
        );
    });
    expect((await findWalEnd(place, archived, { timeline: 7 })).refused).toBe(
      'the log has no timeline 7; it has 2, 3, 10',
    );
  });

  test('the plan leaves out a time behind which there is nothing, and passes a refusal on', async () => {
    const place = copied();
    const target = (over: object) =>
      restoreTarget({
        subject: { store: 'main', database: 'persistence', backup: base, ...over },
        ...{ chain: undefined, held: undefined },
        config: {
          stores: [{ name: 'main', kind: 'postgres' }],
          backups: [
            {
              name: 'wal',
              store: 'main',
              type: 'log',
              source: { kind: 'segments', log: 'wal', directory: place },
            },
          ],
          recovery: { commands: {} },
        } as never,
      });
    expect(await target({ until: point.after })).toMatchObject({
      until: { time: undefined },
      refused: undefined,
    });
    expect(await target({ until: point.between })).toMatchObject({
      until: at(point.between),
      reaches: `Restores what was written before ${point.between}.`,
    });
    expect(await target({ untilXid: '4000000000' })).toMatchObject({
      refused: expect.stringContaining('no transaction 4000000000'),
    });
  });

  test('sessions of others keep a restore out, but not those of the agent', async () => {
    const guard = createGuard({
      services: [],
      store: storeOn(server.port, { user: 'postgres' }),
      database: 'template1',
      runProbe: async () => undefined,
      readSecret: async (text) => String(text),
    });
    const nobody = () => answerOf(guard.isDown()[1]!);
    expect(await nobody()).toEqual({ holds: true, msg: 'no session' });
    const pg = (await import('pg')).default;
    const clients = Array.from(
      { length: 4 },
      () =>
        new pg.Client({
          host: '127.0.0.1',
          port: server.port,
          user: 'postgres',
          database: 'template1',
          application_name: 'worker',
        }),
    );
    const three = clients.slice(1);
    try {
      for (const client of three) await client.connect();
      expect(await nobody()).toEqual({
        holds: false,
        msg: expect.stringMatching(
          /^(?:[^;]*worker[^;]*; ){2}[^;]*worker(?:(?!, and)[^;])*; end these sessions$/,
        ),
      });
      await clients[0]!.connect();
      const { holds, msg } = await nobody();
      expect([holds, msg.match(/worker/g)?.length]).toEqual([false, 3]);
      expect(msg).toMatch(/, and 1 more; end these sessions$/);
      expect(await answerOf(guard.canBeShown()[1]!)).toEqual({ holds: true, msg: '4 now' });
    } finally {
      for (const client of clients) await client.end();
    }
  });
});
