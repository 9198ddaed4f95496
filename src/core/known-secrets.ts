import type { ClientAuth, ReadSecret, Secret } from './access.ts';
import { secretWords } from './redacted.ts';
import { piecesOf, secretPatterns } from './secret-pattern.ts';

/** Removes the credentials of a request from its answer, because some servers repeat the request. */
interface Redaction {
  /** Reads a secret, and removes its value from texts from now on. */
  readonly readSecret: ReadSecret;
  redact(text: string): string;
}

/** Shorter values, such as the number of a tenant, are part of other words. */
const leastLength = 4;

/** Replaces these values in texts, in whatever form a text writes them. */
export function hiderOf(values: readonly string[], mask = '***'): (text: string) => string {
  const hidden = [...new Set(values)].filter(({ length }) => length >= leastLength);
  // The longest value comes first: a value may be part of another value.
  hidden.sort((a, b) => b.length - a.length);
  const patterns = hidden.flatMap(secretPatterns).map((pattern) => new RegExp(pattern, 'g'));
  const pieces = hidden.flatMap(piecesOf);
  return (text) => {
    const rest = patterns.reduce((left, pattern) => left.replace(pattern, () => mask), text);
    const cut = cutLength(rest, pieces);
    return cut === 0 ? rest : rest.slice(0, -cut) + mask;
  };
}

/** A shorter beginning of a value may be a word of the text. */
const leastCut = 8;

/** The length of the beginning of a value with which a text ends that was cut there. */
function cutLength(text: string, pieces: readonly string[]): number {
  let longest = 0;
  for (const piece of pieces)
    for (let length = Math.min(piece.length - 1, text.length); length >= leastCut; length--)
      if (text.endsWith(piece.slice(0, length))) longest = Math.max(longest, length);
  return longest;
}

/** Redacts the answers to requests with these credentials, and `parts` of the URL that are secret. */
export function createRedaction(
  { parts, auth }: { parts: readonly string[]; auth?: ClientAuth },
  readSecret: ReadSecret,
): Redaction {
  /** The last value of each secret. */
  const read = new Map<string, string>();
  const encoded = (password: string): string[] =>
    auth?.basic ? [Buffer.from(`${auth.basic.username}:${password}`).toString('base64')] : [];
  let hide = hiderOf(parts);
  return {
    async readSecret(secret: Secret) {
      const value = await readSecret(secret);
      const place = JSON.stringify(secret);
      if (read.get(place) !== value.trim()) {
        read.set(place, value.trim());
        hide = hiderOf([...parts, ...[...read.values()].flatMap((one) => [one, ...encoded(one)])]);
      }
      return value;
    },
    redact: (text) => hide(text),
  };
}

const isNamedSecret = new RegExp(`(?:${secretWords})$`, 'i');
/** `password=x` in a word: `PGPASSWORD=x`, `--token=x`, a query of a URL, a connection string. */
const assignments = new RegExp(`(?:${secretWords})\\s*=\\s*(?:'([^']*)'|"([^"]*)"|([^\\s&;,]+))`, 'gi');
/** `Authorization: Bearer x`. */
const header = /^([\w-]+):\s*(?:\w+\s+)?(\S.*)$/;
const isSecretHeader = new RegExp(`(?:${secretWords}|^x-.*key)$`, 'i');
const passwordInUrl = /:\/\/[^\s/:@]*:([^\s/]+)@/;
/** Programs that take a password in the same word as `-p`; for other programs `-p` is a port, or a list of ports. */
const takesShortPassword = /(?:^|\/)(?:mysql|mariadb|mydumper|xtrabackup|innobackupex)[^/]*$/;

/** The secrets in a word of a command that the word itself shows. */
function secretsInWord(word: string, program: string): string[] {
  const [, name = '', value = ''] = header.exec(word) ?? [];
  const password = passwordInUrl.exec(word)?.[1];
  return [
    ...[...word.matchAll(assignments)].map(([, single, double, bare]) => single ?? double ?? bare ?? ''),
    ...(isSecretHeader.test(name) ? [value] : []),
    ...(password === undefined ? [] : [password, decoded(password)]),
    ...(word.startsWith('-p') && takesShortPassword.test(program) ? [word.slice(2)] : []),
  ];
}

/**
 * The secrets in a word that the option before it shows: `--password x`, `-u user:x` of curl, `-p x` unless it is a port or a
 * path.
 */
function secretsAfterOption(option: string, word: string): string[] {
  if (!option.startsWith('-') || option.includes('=') || word.startsWith('-')) return [];
  if (isNamedSecret.test(option)) return [word];
  if (/^(?:-u|--(?:proxy-)?user)$/.test(option)) return word.includes(':') ? [word.replace(/^.*?:/, '')] : [];
  return option === '-p' && !/^(?:\d+$|\/)/.test(word) ? [word] : [];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Removes the secrets in the arguments of a program from its texts, because a program may repeat its arguments. Secrets are
 * recognized by their options and forms, and by the variables from which they come.
 */
export function argumentHider(
  [program = '', ...words]: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): (text: string) => string {
  const ofVariables = Object.entries(env).flatMap(([name, value]) =>
    value && isNamedSecret.test(name) && words.some((word) => word.includes(value)) ? [value] : [],
  );
  return hiderOf([
    ...ofVariables,
    ...words.flatMap((word, index) => [
      ...secretsInWord(word, program),
      ...secretsAfterOption(words[index - 1] ?? '', word),
    ]),
  ]);
}
