import { expect, test } from 'vitest';
import { bcryptForm, bcryptMatches } from '../../../src/reporters/listen/auth.ts';

/** The hashes that libxcrypt makes of these passwords; the last row is Openwall's own test vector. */
const hashes = [
  ['secret', '$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a'],
  ['', '$2y$04$......................w74bL5gU7LSJClZClCa.Pkz14aTv/XO'],
  ['pass word:ü€😀', '$2a$06$999999999999999999999uDzYXZPFQV654c0jQeEAKVqS51kyWBNe'],
  ['a'.repeat(71), '$2b$04$CCCCCCCCCCCCCCCCCCCCC.ZP48wSDJeZC4KEEZRkahyfLke0vxZNC'],
  ['a'.repeat(72), '$2b$04$CCCCCCCCCCCCCCCCCCCCC.mDyzbhj.9K0apb9O/AGMWwoLXiYAu6u'],
  ['a'.repeat(300), '$2b$04$CCCCCCCCCCCCCCCCCCCCC.mDyzbhj.9K0apb9O/AGMWwoLXiYAu6u'],
  ['\x7f\x01 ', '$2y$07$zZ0123456789./ABCDEFGeryDF8ZfUlM6plbHT85.hiahgrTFGMfS'],
  ['U*U', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'],
] as const;

test.each(hashes)('%j has its hash and no other', async (password, hash) => {
  expect(bcryptForm.holds(hash)).toBe(true);
  expect(await bcryptMatches(password, hash)).toBe(true);
  const others = [`x${password}`, password.slice(1) || 'y', password.toUpperCase()];
  for (const other of others.filter((text) => text.slice(0, 72) !== password.slice(0, 72))) {
    expect(await bcryptMatches(other, hash)).toBe(false);
  }
  const last = hash.endsWith('O') ? 'e' : 'O';
  expect(await bcryptMatches(password, hash.slice(0, -1) + last)).toBe(false);
});

const digits = `${'.'.repeat(22)}w74bL5gU7LSJClZClCa.Pkz14aTv/XO`;
test.each([
  ['', false],
  ['plain', false],
  [`$2y$04$${digits}`, true],
  [`$2y$16$${digits}`, true],
  [`$2y$17$${digits}`, false],
  [`$2y$03$${digits}`, false],
  [`$2y$4$${digits}`, false],
  [`$2x$04$${digits}`, false],
  [`$2$04$${digits}`, false],
  [`$2y$04$${digits}a`, false],
  [`$2y$04$${digits.slice(1)}`, false],
  [`$2y$04$${digits.slice(1)}!`, false],
  [`$2y$04$${digits}\n`, false],
  ['$apr1$abcdefgh$0123456789abcdefghijkl', false],
])('%j is a hash: %s', async (text, expected) => {
  expect(bcryptForm.holds(text)).toBe(expected);
  if (!expected) expect(await bcryptMatches('', text)).toBe(false);
});
