import type { ClientAuth, ReadSecret } from './access.ts';

/**
 * The value of an `authorization` header; undefined where there are no credentials. Secrets are read anew. Rejects
 * with what `readSecret` rejects with.
 */
export async function authorizationOf(
  auth: ClientAuth | undefined,
  readSecret: ReadSecret,
): Promise<string | undefined> {
  const { bearer, basic } = auth ?? {};
  if (bearer !== undefined) return `Bearer ${(await readSecret(bearer)).trim()}`;
  if (basic === undefined) return undefined;
  const pair = `${basic.username}:${(await readSecret(basic.password)).trim()}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}
