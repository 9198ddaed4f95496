const special = /[\\^$.*+?()[\]{}|/-]/g;
const escaped = (text: string): string => text.replace(special, '\\$&');

/** The letters with which JSON escapes control characters. */
const shortEscapes: Readonly<Record<string, string>> = {
  '\b': 'b',
  '\f': 'f',
  '\n': 'n',
  '\r': 'r',
  '\t': 't',
};
/** The backslashes before a character in JSON in JSON in JSON. The bound keeps the time linear for a text of backslashes. */
const anyBackslashes = '\\\\{0,8}';
const backslashes = '\\\\{1,8}';
const entities: Readonly<Record<string, string>> = {
  '"': 'quot|#34|#x22',
  "'": 'apos|#39|#x27',
  '&': 'amp|#38',
  '<': 'lt|#60',
  '>': 'gt|#62',
};

/** A pattern for the hexadecimal digits of a number, in either case. */
const hex = (number: number, digits: number): string =>
  number
    .toString(16)
    .padStart(digits, '0')
    .replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);

/**
 * The pattern for a character in each form in which texts write it: plain, or escaped by JSON, JSON in JSON, a URL, a form or
 * HTML. Libraries differ in which characters they escape, so each character has its own pattern.
 */
function characterPattern(character: string): string {
  if (/^\w$/.test(character)) return character;
  const bytes = [...Buffer.from(character)].map((byte) => `%${hex(byte, 2)}`).join('');
  const units = character.split('').map((unit) => `${backslashes}u${hex(unit.charCodeAt(0), 4)}`);
  const forms = [`${anyBackslashes}${escaped(character)}`, bytes, units.join('')];
  if (character in shortEscapes) forms.push(`${backslashes}${shortEscapes[character]}`);
  if (character in entities) forms.push(`&(?:${entities[character]});`);
  if (character === ' ') forms.push('\\+');
  return `(?:${forms.join('|')})`;
}

/**
 * The pattern for backslashes in a row, which JSON doubles. They are one part of a value: several parts could divide the
 * backslashes of a text among them in too many ways.
 */
function backslashPattern({ length }: string): string {
  const raw = [8, 4, 2, 1].map((times) => `\\\\{${times * length}}`);
  return `(?:${raw.join('|')}|(?:%5[cC]){${length}})`;
}

const partPattern = (part: string): string =>
  part.startsWith('\\') ? backslashPattern(part) : characterPattern(part);

const base64Character = '[\\w+/-]';
/** Shorter parts of base64 occur by chance. */
const leastInBase64 = 8;

/** Base64 and base64url, also in a URL. */
const base64Pattern = (text: string): string =>
  text.replace(/\+/g, '(?:[+-]|%2[bB])').replace(/\//g, '(?:[/_]|%2[fF])');

/**
 * A value in base64: by itself, and in a longer text such as `user:password`, in which it may begin at any of the three bytes of
 * a group.
 */
function base64Patterns(value: string): string[] {
  const bytes = Buffer.from(value);
  const alone = bytes.toString('base64').replace(/=+$/, '');
  const within = [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    const endBits = (offset + bytes.length) * 8;
    const inner = text.slice(Math.ceil((offset * 8) / 6), Math.floor(endBits / 6));
    if (inner.length < leastInBase64) return [];
    // The characters at both ends contain bits of the neighbours.
    const before = offset === 0 ? '' : `${base64Character}?`;
    const after = endBits % 6 === 0 ? '' : `${base64Character}?`;
    return [before + base64Pattern(inner) + after];
  });
  return [base64Pattern(alone), ...within];
}

/**
 * Longer values are searched in pieces: a text may be cut within a value, and V8 refuses an expression that is too long, with the
 * expression in its error.
 */
const longestPiece = 32;
/** An expression takes memory for each form. What is longer than any token, such as a wrong file, is searched as it is from here on. */
const mostPieces = 256;

export function piecesOf(value: string): string[] {
  const characters = [...value];
  const count = Math.ceil(characters.length / longestPiece);
  const length = Math.ceil(characters.length / count);
  return Array.from({ length: count }, (_, at) => characters.slice(at * length, (at + 1) * length).join(''));
}

/** The sources of regular expressions that together match a value in each form in which a text may write it. */
export const secretPatterns = (value: string): string[] =>
  piecesOf(value).map((piece, at) => (at < mostPieces ? formsOf(piece) : escaped(piece)));

const formsOf = (text: string): string =>
  [(text.match(/\\+|[^\\]/gu) ?? []).map(partPattern).join(''), ...base64Patterns(text)].join('|');
