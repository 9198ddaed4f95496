import type { ClientAuth, ReadSecret, Secret } from './access.ts';

/** Removes the credentials of a request from what is answered: some servers repeat the request. */
interface Redaction {
  /** Reads a secret, and removes its value from texts from now on. */
  readonly readSecret: ReadSecret;
  redact(text: string): string;
}

/** Shorter values, such as the number of a tenant, are part of other words. */
const leastLength = 4;

/** A value as it is, and as JSON, URLs and base64 write it. */
export const spellings = (value: string): string[] => [
  value,
  JSON.stringify(value).slice(1, -1),
  encodeURIComponent(value.toWellFormed()),
  Buffer.from(value).toString('base64').replace(/=+$/, ''),
];

/** Redacts the answers to requests with these credentials, and `parts` of the URL that are secret. */
export function createRedaction(
  { parts, auth }: { parts: readonly string[]; auth?: ClientAuth },
  readSecret: ReadSecret,
): Redaction {
  /** The last value of each secret. */
  const read = new Map<string, string>();
  const encoded = (password: string): string[] =>
    auth?.basic ? [Buffer.from(`${auth.basic.username}:${password}`).toString('base64')] : [];
  return {
    async readSecret(secret: Secret) {
      const value = await readSecret(secret);
      read.set(JSON.stringify(secret), value.trim());
      return value;
    },
    redact(text) {
      const values = [...read.values()].flatMap((value) => [value, ...encoded(value)]);
      const hidden = [...parts, ...values].filter(({ length }) => length >= leastLength).flatMap(spellings);
      // The longest value comes first: a value may be part of another value.
      hidden.sort((a, b) => b.length - a.length);
      return hidden.reduce((rest, value) => rest.replaceAll(value, '***'), text);
    },
  };
}
