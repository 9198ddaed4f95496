import type { ReadSecret } from '../../core/access.ts';
import { isHeaderText } from '../../core/text-formats.ts';
import type { HostedOptions } from '../block.ts';

/** Removes the credentials of a reporter from what its receiver answers: some receivers repeat the request. */
interface Redaction {
  /** Reads a secret, and removes its value from texts from now on. Rejects if a header cannot have it as its value. */
  readonly readSecret: ReadSecret;
  redact(text: string): string;
}

/** Shorter values, such as the number of a tenant, are part of other words. */
const leastLength = 4;

export function createRedaction(
  { endpoint, auth }: Pick<HostedOptions, 'endpoint' | 'auth'>,
  readSecret: ReadSecret,
): Redaction {
  const { search, searchParams, username, password } = new URL(endpoint);
  const ofAddress = [search, ...searchParams.values(), username, password];
  /** The last value of each secret. */
  const read = new Map<string, string>();
  const encoded = (password: string): string[] =>
    auth?.basic ? [Buffer.from(`${auth.basic.username}:${password}`).toString('base64')] : [];
  return {
    async readSecret(secret) {
      const value = await readSecret(secret);
      read.set(JSON.stringify(secret), value.trim());
      // Basic authentication encodes the password.
      if (secret !== auth?.basic?.password && !isHeaderText(value.trim()))
        throw new Error(
          'the secret has a character that a header cannot have, such as a line break; use one line',
        );
      return value;
    },
    redact(text) {
      const values = [...read.values()].flatMap((value) => [value, ...encoded(value)]);
      const hidden = [...ofAddress, ...values].filter(({ length }) => length >= leastLength);
      // The longest value comes first: a value may be part of another value.
      hidden.sort((a, b) => b.length - a.length);
      return hidden.reduce((rest, value) => rest.replaceAll(value, '***'), text);
    },
  };
}
