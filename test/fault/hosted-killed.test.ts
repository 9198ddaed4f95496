import { cpSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import {
  type Bed,
  counter,
  openBed,
  openReceiver,
  receiverForEachTest,
  status,
  valuesOf,
  written,
} from '../hosted.ts';
import { until } from '../until.ts';

const receiver = receiverForEachTest();

const queueOf = (directory: string): string[] =>
  readdirSync(join(directory, 'hosted-metrics'))
    .sort()
    .map((name) => join(directory, 'hosted-metrics', name));

/**
 * The ends of the records in a file: 16 bytes of head, then each record's head of 32 bytes, with the length of its body at the
 * fifth byte.
 */
function endsOf(file: Buffer): number[] {
  const ends: number[] = [];
  for (let at = 16; at < file.length; ends.push(at)) at += 32 + file.readUInt32LE(at + 4);
  return ends;
}

/** A state directory as a kill at this moment leaves it. */
function killed(bed: Bed): string {
  const copy = newFolder();
  cpSync(bed.directory, copy, { recursive: true });
  return copy;
}

async function withBacklog(values: readonly number[]): Promise<Bed> {
  receiver.reply(status(503));
  const bed = await openBed(receiver.url);
  for (const value of values) {
    bed.show([counter(value)]);
    await bed.tick();
  }
  return bed;
}

/** What a new process delivers from a directory, without its own view, and what it drops. */
async function afterRestart(directory: string, own: Parameters<typeof openBed>[1] = {}) {
  const other = await openReceiver();
  const bed = await openBed(other.url, own, { directory });
  await until('the backlog is gone', () => bed.queued().bytes === 0);
  const values = valuesOf(other.taken());
  const { drops, failures } = bed;
  await bed.stop();
  await other.close();
  return { values, drops, failures };
}

test('killed with a backlog: a new process delivers it, in order', async () => {
  const bed = await withBacklog([1, 2, 3, 4]);
  expect(await afterRestart(killed(bed))).toMatchObject({ values: [1, 2, 3, 4], drops: {} });
});

test('killed after a part of the backlog was delivered: that part is not sent again', async () => {
  const bed = await withBacklog([1, 2, 3, 4]);
  let left = 2;
  receiver.reply((received, response) => (left-- > 0 ? written : status(503))(received, response));
  bed.clock.advance(60_000);
  await until('two have gone through', () => bed.delivered() === 2);
  await until('the third is tried', () => left < 0);
  const { values } = await afterRestart(killed(bed));
  expect(values.slice(0, 2)).toEqual([3, 4]);
});

test('killed in a second outage: the backlog of the first was delivered, that of the second arrives whole', async () => {
  const bed = await withBacklog([1, 2, 3]);
  receiver.reply(written);
  bed.clock.advance(60_000);
  await until('the queue is empty', () => bed.delivered() >= 3 && bed.queued().bytes === 0);
  receiver.reply(status(503));
  bed.show([counter(4)]);
  await bed.tick();
  const { values, drops } = await afterRestart(killed(bed));
  expect({ last: values.at(-1), drops }).toEqual({ last: 4, drops: {} });
});

test('killed within a write, at each byte: whole batches arrive, a torn one is counted', async () => {
  const bed = await withBacklog([1, 2, 3]);
  const [file] = queueOf(bed.directory);
  const whole = readFileSync(file!);
  const ends = endsOf(whole);
  expect(ends).toHaveLength(3);
  for (let length = 0; length <= whole.length; length += 7) {
    const directory = killed(bed);
    truncateSync(queueOf(directory)[0]!, length);
    const batches = ends.filter((end) => end <= length).length;
    const isTorn = ![0, 16, ...ends].includes(length);
    const { values, drops, failures } = await afterRestart(directory);
    expect({ values, drops, failures }, `cut at ${length}`).toEqual({
      values: [1, 2, 3].slice(0, batches),
      drops: isTorn ? { 'hosted/corrupt': 1 } : {},
      failures: {},
    });
  }
});

test('a bit that flipped costs its batch, no other', async () => {
  const bed = await withBacklog([1, 2, 3]);
  const directory = killed(bed);
  const [file] = queueOf(directory);
  const bytes = readFileSync(file!);
  const second = endsOf(bytes)[0]! + 40;
  bytes[second] = bytes[second]! ^ 1;
  writeFileSync(file!, bytes);
  expect(await afterRestart(directory)).toMatchObject({ values: [1, 3], drops: { 'hosted/corrupt': 1 } });
});

test('files that are not the queue’s own are left alone, broken ones are counted', async () => {
  const bed = await withBacklog([1]);
  const directory = killed(bed);
  const foreign = join(directory, 'hosted-metrics', 'README');
  writeFileSync(foreign, 'not ours');
  writeFileSync(
    join(directory, 'hosted-metrics', '000000000007.queue'),
    'no segment at all, but named like one',
  );
  expect(await afterRestart(directory)).toMatchObject({ values: [1], drops: { 'hosted/corrupt': 1 } });
  expect(statSync(foreign).size).toBe(8);
});

test('batches that waited for another protocol are dropped and counted', async () => {
  const bed = await withBacklog([1, 2]);
  const { values, drops } = await afterRestart(killed(bed), { protocol: 'otlp' });
  expect(values).toEqual([]);
  expect(drops).toEqual({ 'hosted/rejected': 2 });
});

test('batches that grew too old while nobody ran are dropped and counted', async () => {
  const bed = await withBacklog([1, 2]);
  const other = await openReceiver();
  const clock = manualClock(bed.clock.nowMs() + 7_200_000);
  const later = await openBed(other.url, {}, { directory: killed(bed), clock });
  await until('the newer one goes through', () => later.delivered() === 1);
  expect(later.drops).toEqual({ 'hosted/too_old': 1 });
  await later.stop();
  await other.close();
});

test('stopped with data pending: a last picture goes out, and what does not stays in the queue', async () => {
  const bed = await openBed(receiver.url);
  bed.show([counter(7)]);
  await bed.stop();
  expect(valuesOf(receiver.taken())).toEqual([7]);

  const unlucky = await withBacklog([1]);
  unlucky.show([counter(2)]);
  await unlucky.stop();
  expect((await afterRestart(unlucky.directory)).values).toEqual([1, 2]);
});

test('stopping does not wait for a receiver that hangs', async () => {
  receiver.reply(() => {});
  const bed = await openBed(receiver.url, { timeoutMs: 60_000 });
  const requests = receiver.received.length;
  const stopping = bed.stop();
  await until('the last request is under way', () => receiver.received.length > requests);
  bed.clock.advance(3000);
  await stopping;
  expect((await afterRestart(bed.directory)).values).toEqual([1]);
});
