import { cpSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Batch } from '../../../src/reporters/hosted/protocol.ts';
import { createQueue } from '../../../src/reporters/hosted/queue/queue.ts';
import { manualClock } from '../../clock.ts';
import { runs } from '../../size.ts';

const maxBytes = 8000;
const maxAgeMs = 60_000;
/** The bytes of a record in addition to its body, and of a file in addition to its records (docs in segment.ts). */
const [recordHead, fileHead] = [32, 16];
/** The usable bytes: files are freed one at a time, so one file, and the heads of all, may contain nothing that is needed. */
const usableBytes = maxBytes / 2;

type Step =
  | { do: 'append'; bodyBytes: number }
  | { do: 'deliver' }
  | { do: 'drain' }
  | { do: 'fail' }
  | { do: 'wait'; ms: number }
  | { do: 'kill'; tornBytes: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('append'), bodyBytes: fc.oneof(fc.nat(150), fc.nat(1800)) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('deliver') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('drain') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.constantFrom(20_000, 20_001) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('kill'), tornBytes: fc.constantFrom(0, 0, 1, 30) }) },
) as fc.Arbitrary<Step>;

interface Known {
  points: number;
  bytes: number;
  timeMs: number;
}

/** A queue in files, and a list of what must be in it. */
function createWorld() {
  const root = mkdtempSync(join(tmpdir(), 'svc-agent-queue-'));
  const clock = manualClock();
  let directory = join(root, '0');
  let folders = 0;
  let dropped: [reason: string, points: number][] = [];
  let shown: [bytes: number, oldestMs: number | undefined] = [0, undefined];
  const failures: unknown[] = [];
  const open = () =>
    createQueue(
      { directory, maxBytes, maxAgeMs },
      {
        clock,
        drops: { count: (_, reason, points = 1) => void dropped.push([reason, points]) },
        diskFailed: (error) => void failures.push(error),
        diskWorks() {},
        changed: (...now) => {
          shown = now;
        },
      },
    );
  let queue = open();
  const list: Known[] = [];
  let last = 0;
  const sizeOf = (batches: readonly Known[]) => batches.reduce((sum, { bytes }) => sum + bytes, 0);
  const filesNow = () => readdirSync(directory).sort();

  /**
   * Removes from the list what the queue has dropped: the oldest batches, those that are too old first, and no more than
   * necessary.
   */
  const settle = (incoming: number) => {
    const drops = dropped;
    dropped = [];
    for (const [reason, points] of drops) {
      const first = list.shift()!;
      expect(points).toBe(first.points);
      const isOld = clock.nowMs() - first.timeMs > maxAgeMs;
      expect(reason).toBe(isOld ? 'too_old' : 'queue_full');
      if (!isOld) expect(first.bytes + sizeOf(list) + incoming).toBeGreaterThan(usableBytes);
    }
    expect(list.every(({ timeMs }) => clock.nowMs() - timeMs <= maxAgeMs)).toBe(true);
    expect(shown).toEqual([sizeOf(list), list[0]?.timeMs]);
    expect(failures).toEqual([]);
    const onDisk = filesNow().map((name) => statSync(join(directory, name)).size);
    expect(onDisk.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(maxBytes + fileHead);
    expect(onDisk.length).toBeLessThanOrEqual(list.length + 1);
  };
  const bodyOf = (points: number, bytes: number) => Buffer.alloc(bytes - recordHead, points);
  /** The oldest batch equals what was appended, byte for byte. */
  const oldest = async () => {
    const queued = await queue.peek(0);
    settle(0);
    const first = list[0];
    expect(queued?.batch).toEqual(
      first && {
        ...{ format: 'rw2', points: first.points, timeMs: first.timeMs },
        body: bodyOf(first.points, first.bytes),
      },
    );
    return queued;
  };
  const steps = {
    async append(bodyBytes: number) {
      last += 1;
      const timeMs = clock.nowMs();
      const bytes = bodyBytes + recordHead;
      await queue.append({ format: 'rw2', points: last, timeMs, body: bodyOf(last, bytes) } as Batch);
      const incoming = { points: last, bytes, timeMs };
      // Drops come before the new batch.
      const before = shown;
      shown = [before[0] - bytes, list.length > dropped.length ? before[1] : undefined];
      settle(bytes);
      list.push(incoming);
      shown = before;
      expect(shown).toEqual([sizeOf(list), list[0]!.timeMs]);
    },
    async deliver() {
      const queued = await oldest();
      if (!queued) return;
      await queue.remove(queued);
      list.shift();
      settle(0);
    },
    async drain() {
      while (list.length > 0) await steps.deliver();
    },
    async fail() {
      await oldest();
      queue.release();
    },
    /** Kills the process; the newest write may be cut off. */
    async kill(tornBytes: number) {
      const from = directory;
      directory = join(root, String(++folders));
      cpSync(from, directory, { recursive: true });
      await queue.close();
      const cut = Math.min(tornBytes, list.at(-1)?.bytes ?? 0);
      if (cut > 0) {
        const newest = join(directory, filesNow().at(-1)!);
        truncateSync(newest, statSync(newest).size - cut);
        list.pop();
      }
      queue = open();
      await queue.open();
      // If a batch ends early, its file is counted.
      if (cut > 0) expect(dropped.shift()).toEqual(['corrupt', 1]);
      settle(0);
    },
  };
  return {
    async take(one: Step) {
      if (one.do === 'append') await steps.append(one.bodyBytes);
      else if (one.do === 'kill') await steps.kill(one.tornBytes);
      else if (one.do === 'wait') clock.advance(one.ms);
      else await steps[one.do]();
    },
    open: () => queue.open(),
    async end() {
      await steps.drain();
      await steps.deliver();
    },
    async close() {
      await queue.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

async function play(steps: readonly Step[]): Promise<void> {
  const world = createWorld();
  try {
    await world.open();
    for (const one of steps) await world.take(one);
    await world.end();
  } finally {
    await world.close();
  }
}

const small: Step = { do: 'append', bodyBytes: 50 };
const kill: Step = { do: 'kill', tornBytes: 0 };
const deliver: Step = { do: 'deliver' };
const wait: Step = { do: 'wait', ms: 20_001 };
const large: Step = { do: 'append', bodyBytes: 1000 };

test.each<[string, Step[]]>([
  ['a file that was emptied', [small, small, { do: 'drain' }, small, small, kill]],
  ['a file of which a part was delivered', [small, small, small, deliver, kill, small, deliver, kill]],
  ['a write that was cut off, twice', [small, small, { do: 'kill', tornBytes: 30 }, small, kill, kill]],
  ['more than there is room for', Array.from({ length: 12 }, () => large)],
  ['many small files and more than there is room for', Array.from({ length: 90 }, () => small)],
  ['batches that grow too old', [small, wait, small, wait, small, wait, deliver, small, kill]],
])('%s: batches come out as they went in, and no other is lost', async (_, steps) => {
  await play(steps);
});

test('batches come out as they went in, in order and once, through kills; only the oldest are dropped, only when they must', async () => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), play);
  await fc.assert(property, { numRuns: runs(25) });
});
