import { describe, expect, test } from 'vitest';
import {
  cut,
  harmless,
  paint,
  plain,
  plainScreen,
  screenOf,
  table,
  wrapped,
} from '../../../src/agent/cli/io.ts';

const terminal = { isTTY: true, columns: 20, rows: 10 };
const utf8 = { TERM: 'xterm', LANG: 'en_US.UTF-8' };

describe('a screen', () => {
  test.each([
    { what: 'a terminal in a UTF-8 locale', stream: terminal, env: utf8, shows: [true, true, '’…é'] },
    {
      what: 'one with NO_COLOR',
      stream: terminal,
      env: { ...utf8, NO_COLOR: '1' },
      shows: [false, true, '’…é'],
    },
    {
      what: 'one with an empty NO_COLOR',
      stream: terminal,
      env: { ...utf8, NO_COLOR: '' },
      shows: [true, true, '’…é'],
    },
    {
      what: 'one in the locale C',
      stream: terminal,
      env: { TERM: 'xterm', LANG: 'C' },
      shows: [true, false, "'...?"],
    },
    {
      what: 'one whose LC_ALL wins',
      stream: terminal,
      env: { ...utf8, LC_ALL: 'POSIX' },
      shows: [true, false, "'...?"],
    },
    {
      what: 'the console of Linux',
      stream: terminal,
      env: { ...utf8, TERM: 'linux' },
      shows: [true, false, "'...?"],
    },
    { what: 'TERM=dumb', stream: terminal, env: { ...utf8, TERM: 'dumb' }, shows: [false, false, '’…é'] },
    { what: 'a pipe', stream: {}, env: utf8, shows: [false, false, '’…é'] },
  ])('of $what', ({ stream, env, shows }) => {
    const screen = screenOf(stream, env);
    expect([screen.colour, screen.unicode, screen.printable('’…é')]).toEqual(shows);
  });

  test('has a size only where the cursor can be moved', () => {
    expect(screenOf(terminal, utf8).size()).toEqual({ columns: 20, rows: 10 });
    expect(screenOf({ isTTY: true }, utf8).size()).toEqual({ columns: 80, rows: 24 });
    expect(screenOf(terminal, { TERM: 'dumb' }).size()).toBeUndefined();
    expect(plainScreen.size()).toBeUndefined();
  });
});

test.each([
  ['short', 5, 'short'],
  ['longer', 5, 'long~'],
  ['longer', 1, '~'],
  ['longer', 0, ''],
])('%s is cut to %d characters', (text, width, shown) => {
  expect(cut(text, width, plainScreen)).toBe(shown);
});

test('text from outside moves no cursor', () => {
  expect(plain('a\u001b[2Jb\nc\u009b1md')).toBe('a [2Jb c 1md');
});

test.each([
  ['one two three', 7, ['one two', 'three']],
  ['abcdefghij', 4, ['abcd', 'efgh', 'ij']],
  ['', 10, ['']],
])('%j in lines of %d', (text, width, lines) => {
  expect(wrapped(text, width)).toEqual(lines);
});

describe('a table', () => {
  const rows = [['frontend', 12, 'a message that goes on and on']] as const;

  test('is as wide as it has to be in a pipe', () => {
    expect(table(['ROLE', 'N', 'WHAT'], rows)).toBe(
      'ROLE      N   WHAT\nfrontend  12  a message that goes on and on\n',
    );
  });

  test('fits a terminal: its widest column is cut', () => {
    expect(
      table(['ROLE', 'N', 'WHAT'], rows, screenOf({ ...terminal, columns: 24 }, { ...utf8, NO_COLOR: '1' })),
    ).toBe('ROLE      N   WHAT\nfrontend  12  a message…\n');
  });

  test('has a bold head where there are colours', () => {
    expect(paint('x', 'bold', screenOf(terminal, utf8))).toBe('\u001b[1mx\u001b[0m');
    expect(table(['A'], [['b']], screenOf(terminal, utf8))).toBe('\u001b[1mA\u001b[0m\nb\n');
  });
});

test('what a terminal obeys is an escape, in JSON and in text, and JSON means the same', () => {
  const texts = [
    '\u009b31m',
    '\u202eevil\u202c',
    '\u2066x\u2069',
    '\u200e\u061c',
    '\u007f\u0085',
    '\u2028',
    'Grüße, 日本 🙂',
  ];
  const shown = harmless(JSON.stringify(texts));
  expect(shown).not.toMatch(/[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/);
  expect(JSON.parse(shown)).toEqual(texts);
  expect(harmless('Grüße, 日本 🙂\n')).toBe('Grüße, 日本 🙂\n');
});
