import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pageTarget, sampleName } from '../../scrape.ts';
import { runs } from '../../size.ts';

/** Lines of a target that restarts, grows, shrinks and reorders its page at random. */
const label = fc.constantFrom('', 'a', 'bb', 'two words', 'é', '}{', 'x"y', 'back\\slash', 'n\nl');
const series = fc.record({ name: fc.constantFrom('m', 'mm', 'm_total', 'other'), label });
const line = fc.record({ series, value: fc.double({ noNaN: true }) });
const page = fc.record({
  lines: fc.uniqueArray(line, {
    maxLength: 30,
    selector: ({ series: { name, label: text } }) => JSON.stringify([name, text]),
  }),
  typed: fc.constantFrom('', '# TYPE m gauge\n', '# TYPE m counter\n# HELP m Help.\n'),
  typeLast: fc.boolean(),
  /** Lines before the others: when they are gone, the others get new ids. */
  before: fc.constantFrom(0, 0, 100),
  chunkBytes: fc.integer({ min: 1, max: 200 }),
  /** Whether the page fails as a whole, so that nothing of it may be used. */
  broken: fc.boolean(),
});

const escaped = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
const spelled = (value: number): string => {
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  return Object.is(value, -0) ? '-0' : String(value);
};

test('after each page exactly its lines are there, whatever pages came before', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(page, { minLength: 1, maxLength: 10 }), async (pages) => {
      const target = pageTarget();
      let expected: Record<string, number> = {};
      for (const { lines, typed, typeLast, before, chunkBytes, broken } of pages) {
        const first = Array.from({ length: before }, (_, n): [string, number] => [`first_${n}`, n]);
        const body = lines
          .map(
            ({ series: { name, label: text }, value }) => `${name}{k="${escaped(text)}"} ${spelled(value)}\n`,
          )
          .join('');
        const firstLines = first.map(([name, value]) => `${name} ${value}\n`).join('');
        const text = firstLines + (typeLast ? body + typed : typed + body);
        if (broken) {
          await expect(target.read(text, 'openmetrics', chunkBytes)).rejects.toThrow('# EOF');
        } else {
          expected = Object.fromEntries([
            ...first.map(([name, value]) => [sampleName(name, {}), value]),
            ...lines.map(({ series: { name, label: k }, value }) => [sampleName(name, { k }), value]),
          ]);
          const taken = await target.read(text, 'text', chunkBytes);
          expect(taken.invalidLines).toBe(0);
        }
        expect(target.intake.samples()).toEqual(expected);
      }
    }),
    { numRuns: runs(300) },
  );
});

test('the memory of lines that are gone is used again', async () => {
  const target = pageTarget();
  const names = (round: number) => Array.from({ length: 500 }, (_, n) => `x{r="${round}-${n}"} 1\n`).join('');
  for (let round = 0; round < 50; round++) await target.read(names(round));
  expect(target.table.keys.end).toBeLessThanOrEqual(1000);
  expect(target.table.keys.arena.length).toBeLessThan(64 * 1024);
  expect(target.intake.held.size).toBe(500);
});

test('a page that shrinks gives its memory back, also if its last line stays', async () => {
  const target = pageTarget();
  const names = Array.from({ length: 20_000 }, (_, n) => `x{r="${n}"} 1\n`);
  await target.read(names.join(''));
  const { samples } = await target.read(`${names[0]}${names.at(-1)}`);
  expect(samples).toEqual({ [sampleName('x', { r: '0' })]: 1, [sampleName('x', { r: '19999' })]: 1 });
  const { keys, seen, incoming, taken } = target.table;
  expect([keys.keyAt, keys.heads, seen, incoming, taken].map(({ length }) => length)).toEqual(
    Array(5).fill(64),
  );
  expect(keys.arena.length).toBe(4096);
});

test('pages that fail leave no lines behind', async () => {
  const target = pageTarget({ samples: 500 });
  await target.read('x 1\n');
  const tooMany = (round: number) =>
    Array.from({ length: 501 }, (_, n) => `x{r="${round}-${n}"} 1\n`).join('');
  for (let round = 0; round < 20; round++) {
    await expect(target.read(tooMany(round))).rejects.toMatchObject({ reason: 'too_many_samples' });
  }
  expect(target.table.keys.end).toBeLessThanOrEqual(502);
  expect(target.intake.held.size).toBe(1);
});
