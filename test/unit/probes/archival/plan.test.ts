import { describe, expect, test } from 'vitest';
import type { ArchiveOptions } from '../../../../src/probes/archival/archives.ts';
import { planArchives } from '../../../../src/probes/archival/plan.ts';
import { openArchive } from '../../../object-store.ts';

const section = (more: Partial<ArchiveOptions>): ArchiveOptions => ({
  status: 'enabled',
  enableRead: false,
  providers: [{ kind: 'objectstore', region: 'r' }],
  ...more,
});
const plan = (history?: ArchiveOptions, uri: string | undefined = 's3://bucket/h/') =>
  planArchives({
    archival: { history },
    domainDefaults: { archival: { history: { status: 'enabled', uri } } },
  });

describe('an archive is looked at', () => {
  test.each<[string, Partial<ArchiveOptions>, number]>([
    ['when it is enabled', {}, 1],
    ['when it is paused', { status: 'paused' }, 1],
    ['when it is only read', { status: 'disabled', enableRead: true }, 1],
    ['not when it is off', { status: 'disabled' }, 0],
  ])('%s', (_, more, rows) => expect(plan(section(more))).toHaveLength(rows));

  test('not without a place', () => {
    expect(plan(section({}), '')).toEqual([]);
    expect(planArchives({ archival: { history: section({}) } })).toEqual([]);
    expect(planArchives({})).toEqual([]);
  });
});

test('both archives, each with its series', () => {
  const rows = planArchives({
    archival: { history: section({}), visibility: section({}) },
    domainDefaults: {
      archival: {
        history: { status: 'enabled', uri: 'gs://bucket/h/' },
        visibility: { status: 'enabled', uri: 'file:///var/archive/' },
      },
    },
  });
  expect(
    rows.map(({ name, kind, target, service, shows }) => ({ name, kind, target, service, shows })),
  ).toEqual([
    {
      name: 'archive/history',
      kind: 'archive',
      target: 'gs://bucket/h/',
      service: '',
      shows: { up: { name: 'svc_archival_up', labels: { archive: 'history', scheme: 'gs' } } },
    },
    {
      name: 'archive/visibility',
      kind: 'archive',
      target: 'file:///var/archive/',
      service: '',
      shows: { up: { name: 'svc_archival_up', labels: { archive: 'visibility', scheme: 'file' } } },
    },
  ]);
  for (const { schedule } of rows) expect(schedule.timeoutMs).toBeLessThan(schedule.intervalMs);
});

test('only what a probe is made of changes its key', () => {
  const key = (more: Partial<ArchiveOptions>, uri?: string) => plan(section(more), uri)[0]!.key;
  const same = key({});
  expect(key({ enableRead: true })).toBe(same);
  expect(key({ providers: [{ kind: 'objectstore', region: 'r' }, { kind: 'filestore' }] })).toBe(same);
  const others = [
    key({ status: 'paused' }),
    key({ providers: [{ kind: 'objectstore', region: 'other' }] }),
    key({ providers: [{ kind: 'objectstore', region: 'r', endpoint: 'http://e' }] }),
    key({}, 's3://bucket/other/'),
  ];
  expect(new Set([same, ...others]).size).toBe(5);
});

test.each(['azure', 'constructor'])('an unknown scheme, %s, is said and shows nothing', async (scheme) => {
  const { row, check } = await openArchive({ uri: `${scheme}://bucket/history/` });
  expect(row.shows).toEqual({});
  expect(await check()).toEqual({
    reason: 'failed',
    msg: `archives of scheme ${scheme} cannot be checked; known schemes: file, s3, gs`,
  });
});
