import files from 'node:fs/promises';
import { type ReadSecret, secretPlaceText } from '../core/access.ts';
import { AgentError, systemCode } from '../core/errors.ts';
import { regularFileReader } from '../core/regular-file.ts';

const readFile = regularFileReader(files);

/**
 * Reads a secret from its variable or file, at each use; the last newline of a file is removed. Rejects with
 * `config_invalid` if it is missing. Messages never contain the secret.
 */
export function createReadSecret(env: Readonly<Record<string, string | undefined>>): ReadSecret {
  return async (secret) => {
    if (typeof secret === 'string') return secret;
    if ('env' in secret) {
      const text = env[secret.env];
      if (text !== undefined) return text;
      const fault = {
        where: 'secret',
        what: `${secretPlaceText(secret)} is not set`,
        allowed: 'set it',
      };
      throw new AgentError('config_invalid', fault);
    }
    const bytes = await readFile(secret.file).catch((cause: unknown) => {
      // The error of the file system contains the name, which may be the secret.
      const what = `${secretPlaceText(secret)} cannot be read (${systemCode(cause) ?? 'failed'})`;
      const fault = { where: 'secret', what, allowed: 'name a file that the agent can read' };
      throw new AgentError('config_invalid', fault);
    });
    return bytes.toString('utf8').replace(/\r?\n$/, '');
  };
}
