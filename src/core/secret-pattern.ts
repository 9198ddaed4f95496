/**
 * Backslashes before an escaped character: JSON writes 1, JSON in JSON 3, and in JSON again 7. Without a limit, a text of backslashes
 * would take a time that grows with the square of its length, or faster.
 */
const mostBackslashes = 7;

const special = /[\\^$.*+?()[\]{}|/-]/g;
const escaped = (text: string): string => text.replace(special, '\\$&');

/** Control characters in JSON. */
const shortEscapes: Readonly<Record<string, string>> = {
  '\b': 'b',
  '\f': 'f',
  '\n': 'n',
  '\r': 'r',
  '\t': 't',
};
const entities: Readonly<Record<string, string>> = {
  '"': 'quot|#34|#x22',
  "'": 'apos|#39|#x27',
  '&': 'amp|#38',
  '<': 'lt|#60',
  '>': 'gt|#62',
};

/** Hexadecimal digits in either case. */
const hex = (number: number, digits: number): string =>
  number
    .toString(16)
    .padStart(digits, '0')
    .replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);

/**
 * A character as texts write it: as it is, or escaped by JSON, also in JSON again, by a URL, a form or HTML. What is escaped
 * differs from library to library, so that each character counts by itself.
 */
function characterPattern(character: string): string {
  if (/^\w$/.test(character)) return character;
  const bytes = [...Buffer.from(character)].map((byte) => `%${hex(byte, 2)}`).join('');
  const units = character.split('').map((unit) => `\\\\{1,${mostBackslashes}}u${hex(unit.charCodeAt(0), 4)}`);
  const forms = [`\\\\{0,${mostBackslashes}}${escaped(character)}`, bytes, units.join('')];
  if (character in shortEscapes) forms.push(`\\\\{1,${mostBackslashes}}${shortEscapes[character]}`);
  if (character in entities) forms.push(`&(?:${entities[character]});`);
  if (character === ' ') forms.push('\\+');
  return `(?:${forms.join('|')})`;
}

/** Backslashes, of which each is escaped again by another one, or by a URL. */
const backslashPattern = (count: number): string =>
  `(?:\\\\|%5[cC]){${count},${count * (mostBackslashes + 1)}}`;

const textPattern = (text: string): string =>
  (text.match(/\\+|[^\\]/gu) ?? [])
    .map((part) => (part.startsWith('\\') ? backslashPattern(part.length) : characterPattern(part)))
    .join('');

const base64Character = '[\\w+/-]';
/** Shorter parts of base64 occur by chance. */
const leastInBase64 = 8;

/** Base64 and base64url, also in a URL. */
const base64Pattern = (text: string): string =>
  text.replace(/\+/g, '(?:[+-]|%2[bB])').replace(/\//g, '(?:[/_]|%2[fF])');

/** A value in base64: by itself, and in a longer text such as `user:password`, where it begins at any of three places of a group. */
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

/** The source of a regular expression that matches a value in each form in which a text may write it. */
export const secretPattern = (value: string): string =>
  [textPattern(value), ...base64Patterns(value)].join('|');
