import { expect, test } from 'vitest';
import { createPasswordCheck } from '../../../src/reporters/listen/auth.ts';

const hash = (cost: string, letter: string) => `$2b$${cost}$${letter.repeat(53)}`;
const users = { alice: hash('05', 'a'), bob: hash('07', 'b') };

/** A check whose hashes are compared by hand: `right` says which password belongs to which hash. */
function checkOf(right: Record<string, string>) {
  const asked: { password: string; hash: string }[] = [];
  const waiting: (() => void)[] = [];
  const { check } = createPasswordCheck(users, {
    matches: (password, compared) =>
      new Promise((resolve) => {
        asked.push({ password, hash: compared });
        waiting.push(() => resolve(right[password] === compared));
      }),
  });
  const settle = async () => {
    for (let turn = 0; turn < 200; turn++) {
      waiting.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const verdict = async (username: string, password: string) => {
    const made = check(username, password);
    await settle();
    return made;
  };
  return { check, verdict, settle, asked };
}

test('the newest right password is remembered, a wrong one costs its hash each time', async () => {
  const { verdict, asked } = checkOf({ one: users.alice });
  expect(await verdict('alice', 'one')).toBe('accepted');
  expect(await verdict('alice', 'one')).toBe('accepted');
  expect(asked).toHaveLength(1);
  expect(await verdict('alice', 'two')).toBe('rejected');
  expect(await verdict('alice', 'two')).toBe('rejected');
  expect(asked).toHaveLength(3);
  expect(await verdict('alice', 'one')).toBe('accepted');
  expect(await verdict('bob', 'one')).toBe('rejected');
  expect(asked.at(-1)).toEqual({ password: 'one', hash: users.bob });
});

test('an unknown user costs one hash too, as much as the costliest', async () => {
  const { verdict, asked } = checkOf({ one: users.alice });
  for (const name of ['carol', '', '__proto__', 'constructor']) {
    expect(await verdict(name, 'one')).toBe('rejected');
    expect(asked.at(-1)!.hash).toMatch(/^\$2b\$07\$[a-z]{53}$/);
  }
  expect(asked).toHaveLength(4);
});

test('even if nobody’s hash matched, nobody gets in', async () => {
  const { check } = createPasswordCheck(users, { matches: () => Promise.resolve(true) });
  expect(await check('carol', 'one')).toBe('rejected');
  expect(await check('alice', 'one')).toBe('accepted');
});

test('one hash at a time, 16 wait, more are told so; who was right before does not wait', async () => {
  const { check, verdict, settle, asked } = checkOf({ one: users.alice, two: users.bob });
  expect(await verdict('alice', 'one')).toBe('accepted');
  const guesses = Array.from({ length: 20 }, (_, i) => check('alice', `guess ${i}`));
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked).toHaveLength(2);
  expect(await check('alice', 'one')).toBe('accepted');
  expect(await check('bob', 'two')).toBe('busy');
  await settle();
  const verdicts = await Promise.all(guesses);
  expect(verdicts.slice(0, 16)).toEqual(Array.from({ length: 16 }, () => 'rejected'));
  expect(verdicts.slice(16)).toEqual(['busy', 'busy', 'busy', 'busy']);
  expect(await verdict('bob', 'two')).toBe('accepted');
});

test('a scraper that asks twice at once costs one hash', async () => {
  const { check, settle, asked } = checkOf({ one: users.alice });
  const both = [check('alice', 'one'), check('alice', 'one')];
  await settle();
  expect(await Promise.all(both)).toEqual(['accepted', 'accepted']);
  expect(asked).toHaveLength(1);
});
