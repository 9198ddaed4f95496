const hidden = '***';

/** The user part of any URL. */
const userInfo = /(\w:\/\/)[^\s/@]+@/g;

/** The spellings in which a driver may repeat a secret. */
function spellings(secret: string): string[] {
  const wellFormed = secret.replace(/\p{Surrogate}/gu, '\ufffd');
  const percent = encodeURIComponent(wellFormed);
  const json = JSON.stringify(secret).slice(1, -1);
  return [secret, json, percent, percent.replaceAll('%20', '+'), encodeURI(wellFormed)];
}

function patternOf(secret: string): string {
  return spellings(secret)
    .sort((one, other) => other.length - one.length)
    .map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
    .map((text) => text.replace(/%[0-9A-F]{2}/g, (code) => `(?:${code}|${code.toLowerCase()})`))
    .join('|');
}

export interface Redact {
  (text: string): string;
  /** Redacts every string in a JSON value, keys included. */
  deep<T>(value: T): T;
}

/** Replaces a secret, also percent-encoded or quoted as JSON, and the user part of any URL. */
export function createRedact(secret: string | undefined): Redact {
  const pattern = secret ? new RegExp(patternOf(secret), 'g') : undefined;
  const plain = (text: string) => {
    const withoutSecret = pattern === undefined ? text : text.replace(pattern, hidden);
    return withoutSecret.replace(userInfo, `$1${hidden}@`);
  };
  const deep = (value: unknown): unknown => {
    if (typeof value === 'string') return plain(value);
    if (Array.isArray(value)) return value.map(deep);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, below]) => [plain(key), deep(below)]));
  };
  return Object.assign(plain, { deep: <T>(value: T) => deep(value) as T });
}
