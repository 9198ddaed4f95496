import { expect, test } from 'vitest';
import { count, gauge, inMemory, type PushedFamily, startPush } from '../../push.ts';

const two = (name: string, kind: PushedFamily['kind'], numbers: readonly [number, number]): PushedFamily => ({
  name,
  kind,
  series: [
    { labels: { x: 'a.b' }, numbers: [numbers[0]] },
    { labels: { x: 'a_b' }, numbers: [numbers[1]] },
  ],
});

/** The lines of one flush. */
async function linesOf(specs: readonly PushedFamily[], tagFormat: 'suffix' | 'none' | 'dogstatsd' = 'none') {
  const lines: string[] = [];
  const rig = await startPush(
    { tagFormat },
    { open: inMemory((datagram) => void lines.push(...datagram.split('\n'))) },
  );
  rig.show(specs);
  await rig.flush();
  return { lines, dropped: Object.fromEntries(rig.dropped), rig };
}

test('totals that meet are one line with their sum; a total of 0 is none', async () => {
  const { lines } = await linesOf([two('n', 'counter', [3, 4]), count('zero', 0)]);
  expect(lines).toEqual(['n:7|c']);
});

test('a member that goes or falls never lowers the sum', async () => {
  const { lines, rig } = await linesOf([two('n', 'counter', [3, 4])]);
  rig.show([{ name: 'n', kind: 'counter', series: [{ labels: { x: 'a_b' }, numbers: [6] }] }]);
  await rig.flush();
  rig.show([two('n', 'counter', [3, 1])]);
  await rig.flush();
  expect(lines).toEqual(['n:7|c', 'n:2|c', 'n:1|c']);
});

test('gauges that meet are added where the catalog says so, else refused and counted', async () => {
  const additive = two('svc_matching_tasklist_backlog', 'gauge', [3, 4]);
  const { lines, dropped } = await linesOf([additive, two('other', 'gauge', [3, 4]), gauge('alone', 5)]);
  expect(lines).toEqual(['svc_matching_tasklist_backlog:7|g', 'alone:5|g']);
  expect(dropped).toEqual({ not_additive: 2 });
});

test('gauges that meet only because a format cannot write their tags are refused too', async () => {
  const { lines, dropped } = await linesOf([two('other', 'gauge', [3, 4])], 'suffix');
  expect(lines).toEqual([]);
  expect(dropped).toEqual({ not_additive: 2 });
  const exact = await linesOf([two('other', 'gauge', [3, 4])], 'dogstatsd');
  expect(exact.lines).toEqual(['other:3|g|#instance:host1,x:a.b', 'other:4|g|#instance:host1,x:a_b']);
});

test.each([Number.NaN, Infinity, -Infinity])('a gauge of %d is left out and counted', async (value) => {
  const { lines, dropped } = await linesOf([gauge('g', value), gauge('h', 1)]);
  expect(lines).toEqual(['h:1|g']);
  expect(dropped).toEqual({ not_finite: 1 });
});

test('only what the block shows is asked for', async () => {
  const asked: boolean[] = [];
  const rig = await startPush(
    {},
    {
      open: inMemory(() => {}),
      takes: ({ service }) => service === 'history',
      gather: async ({ takes }) => {
        asked.push(takes({ service: 'history', relayed: true }), takes({ service: '', relayed: false }));
        return { families: [], numbers: () => new Float64Array(0), release() {} };
      },
    },
  );
  await rig.flush();
  expect(asked).toEqual([true, false]);
  expect(rig.delivered()).toBe(1);
});
