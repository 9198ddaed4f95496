import { AgentError } from '../../core/errors.ts';

export type TokenType = 'number' | 'duration' | 'string' | 'name' | 'sign' | 'end';

export interface Token {
  type: TokenType;
  text: string;
  start: number;
  end: number;
}

const patterns: readonly (readonly [TokenType | 'blank', RegExp])[] = [
  ['blank', /(?:\s+|#[^\n]*)/y],
  ['duration', /(?:\d+(?:ms|[smhdwy]))+(?![A-Za-z0-9_])/y],
  ['number', /(?:0x[0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![A-Za-z0-9_.])/y],
  ['name', /[A-Za-z_][A-Za-z0-9_:]*/y],
  ['string', /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`/y],
  ['sign', /==|!=|=~|!~|>=|<=|[-+*/%^<>=(){}[\],:@]/y],
];

/** The error of a text that is no PromQL; the place is a count of characters from 0. */
export function notPromql(text: string, at: number, what: string): AgentError {
  const got = text.slice(at, at + 20) || 'the end';
  return new AgentError('internal', { where: `expression at ${at}`, what, got, allowed: `in ${text}` });
}

/** Cuts PromQL into tokens, blanks and comments left out, an `end` last. Throws on a character of no token. */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const next = tokenAt(text, at);
    if (!next) throw notPromql(text, at, 'not PromQL');
    const [type, word] = next;
    if (type !== 'blank') tokens.push({ type, text: word, start: at, end: at + word.length });
    at += word.length;
  }
  return [...tokens, { type: 'end', text: '', start: at, end: at }];
}

function tokenAt(text: string, at: number): readonly [TokenType | 'blank', string] | undefined {
  for (const [type, pattern] of patterns) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) return [type, found[0]];
  }
  return undefined;
}
