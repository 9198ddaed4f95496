import { expect, test } from 'vitest';
import { createLineMemory } from '../../src/sources/scrape/exposition/line-memory.ts';
import { pageTarget, sampleName as s } from '../scrape.ts';

const kibibyte = 1024;
const page = (lines: number) => Array.from({ length: lines }, (_, n) => `x{i="${n}"} ${n}\n`).join('');

function targets() {
  const memory = createLineMemory(150 * kibibyte);
  const uses = [memory.open(), memory.open()];
  const [first, second] = uses.map((use) => pageTarget({}, use));
  return { uses, first: first!, second: second! };
}

test('of pages that are too large together the one that comes last is discarded, and one of usual size is served', async () => {
  const { first, second } = targets();
  await first.read(page(1500));
  await expect(second.read(page(1500))).rejects.toMatchObject({
    reason: 'too_large',
    message: 'the lines of all pages take more than 0 MiB, three tenths of the heap',
  });
  expect(second.intake.held.size).toBe(0);
  // A quarter of the limit is for both targets.
  const taken = await second.read(page(100));
  expect(taken.samples[s('x', { i: '99' })]).toBe(99);
  const again = await first.read(page(1500));
  expect(Object.keys(again.samples)).toHaveLength(1500);
});

test('a discarded page, and a target that ends, leave their memory to the others', async () => {
  const { uses, first, second } = targets();
  await expect(first.read(page(20_000))).rejects.toMatchObject({ reason: 'too_large' });
  await second.read(page(700));
  await expect(first.read(page(1500))).rejects.toMatchObject({ reason: 'too_large' });
  uses[1]!.close();
  expect(Object.keys((await first.read(page(1500))).samples)).toHaveLength(1500);
});
