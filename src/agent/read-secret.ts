import { readFile } from 'node:fs/promises';
import type { ReadSecret } from '../core/access.ts';
import { AgentError, errorText } from '../core/errors.ts';

/**
 * Secrets by variable or file, read anew at each use; the last newline of a file is left out. Rejects with
 * `config_invalid` when one is not there, and never says what it holds.
 */
export function createReadSecret(env: Readonly<Record<string, string | undefined>>): ReadSecret {
  return async (secret) => {
    if (typeof secret === 'string') return secret;
    if ('env' in secret) {
      const text = env[secret.env];
      if (text !== undefined) return text;
      const fault = {
        where: 'secret',
        what: `environment variable ${secret.env} is not set`,
        allowed: 'set it',
      };
      throw new AgentError('config_invalid', fault);
    }
    const text = await readFile(secret.file, 'utf8').catch((cause: unknown) => {
      const what = `file cannot be read (${errorText(cause)})`;
      const fault = { where: 'secret', what, got: secret.file, allowed: 'put it there' };
      throw new AgentError('config_invalid', fault, cause);
    });
    return text.replace(/\r?\n$/, '');
  };
}
