import { expect, test } from 'vitest';
import { createFields, createSlots, plainText, setField } from '../../../src/sources/logs/lines/fields.ts';
import { createLastErrors } from '../../../src/sources/logs/metrics/last-errors.ts';

const slots = createSlots();
const names = ['level', 'logger', 'msg', 'error'];
function entry(...values: string[]) {
  const fields = createFields(names.map((name) => slots.of(name)));
  const bytes = Buffer.from(values.join(''));
  fields.bytes = bytes;
  let at = 0;
  for (const [i, value] of values.entries()) {
    setField(fields, slots.of(names[i]!), plainText, at, at + Buffer.byteLength(value));
    at += Buffer.byteLength(value);
  }
  return fields;
}

test('the newest twenty, newest first, 16 of a service and second, none longer than 300 characters', () => {
  let nowMs = 1;
  const errors = createLastErrors(() => nowMs);
  const notes = errors.of(slots, 'level');
  for (let second = 0; second < 5; second++) {
    for (let chunk = 0; chunk < 4; chunk++) {
      nowMs = 1 + 1000 * second + 250 * chunk;
      notes.flush();
      for (let i = 0; i < 10; i++)
        notes.note('history', entry('error', 'shard', `${second} ${10 * chunk + i}`, 'x'.repeat(1000)));
    }
  }
  const all = errors.all();
  expect(all).toHaveLength(20);
  expect(all[0]).toMatchObject({ atMs: 4251, service: 'history', level: 'error', logger: 'shard' });
  expect(all[0]!.msg).toMatch(/^4 15: x+…$/);
  expect(all[0]!.msg).toHaveLength(300);
  expect(all[19]!.msg).toMatch(/^3 12: /);
});

test('a flood of one service takes nothing from another, and a clock that is set back is no end', () => {
  let nowMs = 1_000_000;
  const errors = createLastErrors(() => nowMs);
  const [history, matching] = [errors.of(slots, 'level'), errors.of(slots, 'level')];
  for (let i = 0; i < 100; i++) history.note('history', entry('error', 'shard', `${i}`, ''));
  matching.note('matching', entry('error', 'tasks', 'one', ''));
  expect(errors.all()[0]).toMatchObject({ service: 'matching', msg: 'one' });
  nowMs = 5;
  history.flush();
  history.note('history', entry('error', 'shard', 'after', ''));
  expect(errors.all()[0]).toMatchObject({ atMs: 5, msg: 'after' });
});

test('a flood of errors does not hide the fatal entry that ends it', () => {
  const errors = createLastErrors(() => 1);
  const notes = errors.of(slots, 'level');
  for (let i = 0; i < 100; i++) notes.note('history', entry('error', 'shard', `${i}`, ''));
  notes.note('history', entry('fatal', 'main', 'join duration exceeded', ''));
  expect(errors.byService()[0]!.entries[0]).toMatchObject({ level: 'fatal', msg: 'join duration exceeded' });
});
