import { expect, test } from 'vitest';
import { type OnceOptions, probeOnce } from '../../../../src/probes/runner/runner.ts';
import { manualClock } from '../../../clock.ts';
import { probeDeps, rest, type Scripted, scripted } from './bed.ts';

function once(probes: readonly Scripted[], options?: OnceOptions) {
  const clock = manualClock();
  const heard: string[] = [];
  const seen: { results?: [name: string, ok: boolean, reason?: string][] } = {};
  const onResult = ({ name }: { name: string }) => void heard.push(name);
  const checks = probeOnce(
    probes.map(({ row }) => row),
    { ...probeDeps(clock), onResult },
    options,
  );
  void checks.then((looked) => {
    seen.results = looked.map(({ row, result }) => [row.name, result.ok, result.reason]);
  });
  const pass = async (ms: number) => {
    clock.advance(ms);
    await rest();
  };
  return { clock, heard, seen, pass };
}

test('results are told as they come, and stand in the rows’ order at the end; all is closed', async () => {
  const [a, b] = [scripted('a'), scripted('b')];
  const { heard, seen } = once([a, b]);
  await rest();
  await b.lastCheck.finds({ reason: 'not_ok', msg: 'no' });
  expect(heard).toEqual(['b']);
  await a.lastCheck.finds();
  expect(heard).toEqual(['b', 'a']);
  expect(seen.results).toEqual([
    ['a', true, undefined],
    ['b', false, 'not_ok'],
  ]);
  expect([a.closed, b.closed]).toEqual([1, 1]);
});

test('no rows, no results', async () => {
  const { seen } = once([]);
  await rest();
  expect(seen.results).toEqual([]);
});

test('few at once, one of a lane', async () => {
  const probes = ['a', 'b', 'c', 'd'].map((name) =>
    scripted(name, { row: { lane: name < 'c' ? 'one' : undefined } }),
  );
  const [a, b, c, d] = probes as [Scripted, Scripted, Scripted, Scripted];
  const { seen } = once(probes, { concurrency: 2 });
  await rest();
  const begun = () => probes.map(({ checks }) => checks.length);
  expect(begun()).toEqual([1, 0, 1, 0]);
  await c.lastCheck.finds();
  expect(begun()).toEqual([1, 0, 1, 1]);
  await a.lastCheck.finds();
  expect(begun()).toEqual([1, 1, 1, 1]);
  await d.lastCheck.finds();
  await b.lastCheck.finds();
  expect(seen.results?.map(([name]) => name)).toEqual(['a', 'b', 'c', 'd']);
});

test('a probe that hangs is too slow, and holds the others of its lane up for two seconds more', async () => {
  const [a, b] = [scripted('a', { row: { lane: 'one' } }), scripted('b', { row: { lane: 'one' } })];
  const { heard, seen, pass } = once([a, b]);
  await rest();
  await pass(5000);
  expect([heard, b.checks.length]).toEqual([['a'], 0]);
  await pass(1999);
  expect(b.checks).toHaveLength(0);
  await pass(1);
  await b.lastCheck.finds();
  expect(seen.results).toEqual([
    ['a', false, 'too_slow'],
    ['b', true, undefined],
  ]);
});

test('the signal ends checks under way, and others do not begin', async () => {
  const probes = ['a', 'b', 'c'].map((name) => scripted(name));
  const [a, b, c] = probes as [Scripted, Scripted, Scripted];
  const end = new AbortController();
  const { heard, seen } = once(probes, { concurrency: 2, signal: end.signal });
  await rest();
  await a.lastCheck.finds();
  end.abort();
  await rest();
  expect([b.lastCheck.signal.aborted, c.lastCheck.signal.aborted, seen.results]).toEqual([
    true,
    true,
    undefined,
  ]);
  await b.lastCheck.throws(new Error('aborted'));
  await c.lastCheck.throws(new Error('aborted'));
  expect(seen.results).toEqual([['a', true, undefined]]);
  expect(heard).toEqual(['a']);
});

test('a signal that has aborted before', async () => {
  const probe = scripted('a');
  const { seen } = once([probe], { signal: AbortSignal.abort() });
  await rest();
  expect([seen.results, probe.opened]).toEqual([[], 0]);
});

test('rows that wait when the signal aborts have no result', async () => {
  const [a, b] = [scripted('a'), scripted('b')];
  const end = new AbortController();
  const { seen } = once([a, b], { concurrency: 1, signal: end.signal });
  await rest();
  end.abort();
  await a.lastCheck.throws(new Error('aborted'));
  expect([seen.results, b.opened]).toEqual([[], 0]);
});

test('what cannot be made is a failed check', async () => {
  const open = () => Promise.reject(new Error('no such driver'));
  const { seen } = once([scripted('a', { row: { open } })]);
  await rest();
  expect(seen.results).toEqual([['a', false, 'failed']]);
});

test('a backup waits for its store, and is checked with what that says', async () => {
  const store = scripted('store/main', { row: { kind: 'store' } });
  const backup = scripted('backup/b', { row: { kind: 'backup' } });
  const other = scripted('health/history');
  const latest: unknown[] = [];
  const { open } = backup.row;
  backup.row.open = (deps) => {
    latest.push(deps.latest?.('store/main')?.msg, deps.latest?.('store/other'));
    return open(deps);
  };
  const { seen } = once([backup, store, other]);
  await rest();
  expect([backup.checks.length, store.checks.length, other.checks.length]).toEqual([0, 1, 1]);
  await store.lastCheck.finds({ msg: 'its tables' });
  await other.lastCheck.finds();
  expect(latest).toEqual(['its tables', undefined]);
  await backup.lastCheck.finds();
  expect(seen.results).toEqual([
    ['backup/b', true, undefined],
    ['store/main', true, undefined],
    ['health/history', true, undefined],
  ]);
});

test('without a store among the probes, a backup is checked at once, and compared with none', async () => {
  const backup = scripted('backup/b', { row: { kind: 'backup' } });
  const latest: unknown[] = [];
  const { open } = backup.row;
  backup.row.open = (deps) => {
    latest.push(deps.latest);
    return open(deps);
  };
  once([backup]);
  await rest();
  expect(latest).toEqual([undefined]);
  expect(backup.checks).toHaveLength(1);
});
