import { timingSafeEqual } from 'node:crypto';
import type { ListenerAuth, ReadSecret, Secret } from '../../../core/access.ts';
import { createDigest, createPasswordCheck, type PasswordCheckDeps, type Verdict } from './password-check.ts';

/** Lets in whoever shows one of a listener's credentials. */
export interface Guard {
  /** Values of `WWW-Authenticate` (RFC 9110, 11.6.1): what would be taken. */
  readonly challenges: string[];
  /** Judges a request's `Authorization`. Rejects when the secret to compare with is not there. */
  judge(authorization: string | undefined): Promise<Verdict>;
}

export interface GuardDeps extends PasswordCheckDeps {
  readSecret: ReadSecret;
}

/** Name and password of RFC 7617. */
function basicOf(credentials: string): { username: string; password: string } | undefined {
  const pair = Buffer.from(credentials, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon < 0 ? undefined : { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

/** A secret of the configuration, spaces around it left out. */
async function textOf(secret: Secret, readSecret: ReadSecret): Promise<string> {
  const text = (await readSecret(secret)).trim();
  // Nobody gets in by showing nothing while somebody replaces the file.
  if (text === '') throw new Error('the secret of a listener is empty');
  return text;
}

function challengesOf({ bearer, basic, basicAuthUsers }: ListenerAuth): string[] {
  const realm = 'realm="svc-agent"';
  return [
    ...(basic || basicAuthUsers ? [`Basic ${realm}, charset="UTF-8"`] : []),
    ...(bearer === undefined ? [] : [`Bearer ${realm}`]),
  ];
}

/** A guard for what the configuration asks. All comparisons take the same time whatever differs. */
export function createGuard(auth: ListenerAuth, deps: GuardDeps): Guard {
  const { bearer, basic, basicAuthUsers } = auth;
  const { readSecret } = deps;
  const digest = createDigest();
  const users = basicAuthUsers && createPasswordCheck(basicAuthUsers, deps);

  const judgeBearer = async (token: string): Promise<Verdict> => {
    if (bearer === undefined) return 'wrong';
    return timingSafeEqual(digest(token), digest(await textOf(bearer, readSecret))) ? 'right' : 'wrong';
  };

  const judgeBasic = async (credentials: string): Promise<Verdict> => {
    const shown = basicOf(credentials);
    if (!shown) return 'wrong';
    const { username, password } = shown;
    if (basic !== undefined) {
      const wanted = digest(basic.username, await textOf(basic.password, readSecret));
      if (timingSafeEqual(digest(username, password), wanted)) return 'right';
    }
    return users ? users.check(username, password) : 'wrong';
  };

  return {
    challenges: challengesOf(auth),
    async judge(authorization = '') {
      const [, scheme = '', credentials = ''] = /^(\w+) +(.+)$/.exec(authorization) ?? [];
      if (scheme.toLowerCase() === 'bearer') return judgeBearer(credentials);
      if (scheme.toLowerCase() === 'basic') return judgeBasic(credentials);
      return 'wrong';
    },
  };
}
