import type { ListenerAuth } from '../../core/access.ts';
import { AgentError } from '../../core/errors.ts';
import type { AdminConfig } from '../config/types.ts';
import { createReadSecret } from '../read-secret.ts';
import { configurationOptions } from './arguments.ts';
import type { Target } from './ask.ts';
import { type ConfigurationValues, configured } from './configured.ts';
import type { Io } from './io.ts';

/** The options of every command that asks a running agent. */
export const targetOptions = {
  ...configurationOptions,
  url: { type: 'string' },
  ca: { type: 'string' },
  insecure: { type: 'boolean' },
} as const;

export const targetUsage = `      --url URL   where to ask, instead of the configured admin listener; may hold user:password@
      --ca FILE   authorities to trust for https
      --insecure  takes any certificate
`;

interface TargetValues extends ConfigurationValues {
  url?: string | undefined;
  ca?: string | undefined;
  insecure?: boolean | undefined;
}

async function authorizationOf({ bearer, basic }: ListenerAuth, io: Io): Promise<string | undefined> {
  const readSecret = createReadSecret(io.env);
  if (bearer !== undefined) return `Bearer ${(await readSecret(bearer)).trim()}`;
  if (basic === undefined) return undefined;
  const password = (await readSecret(basic.password)).trim();
  return `Basic ${Buffer.from(`${basic.username}:${password}`).toString('base64')}`;
}

const dialled = (address: string): string => address.replace(/^(0\.0\.0\.0|\[::\]|):/, '127.0.0.1:');

async function configuredTarget(values: TargetValues, path: string, io: Io): Promise<Target> {
  const { config } = await configured(values, io);
  const admin: AdminConfig | undefined = config.admin;
  if (!admin?.listenAddress) {
    const allowed = 'set admin.listenAddress, or name a --url';
    throw new AgentError('usage', { where: 'admin', what: 'turned off, so nothing answers', allowed });
  }
  const { listenAddress, health, tls, auth } = admin;
  // Clients without a certificate are answered there, in the clear.
  if (path !== '/api/status' && health) return { url: `http://${dialled(health)}${path}` };
  const authorization = auth && path === '/api/status' ? await authorizationOf(auth, io) : undefined;
  const url = `${tls ? 'https' : 'http'}://${dialled(listenAddress)}${path}`;
  return { url, authorization, certFile: tls?.certFile };
}

/**
 * Where the running agent answers for a path: by --url, else where the configuration says, a wildcard dialled on
 * loopback, with the certificate and the credentials that stand there. Throws `usage` if admin is off.
 */
export async function targetOf(values: TargetValues, path: string, io: Io): Promise<Target> {
  const { url, ca: caFile, insecure } = values;
  if (url === undefined) return configuredTarget(values, path, io);
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return { url, caFile, insecure };
  const allowed = 'use the form https://127.0.0.1:9465/health';
  throw new AgentError('usage', { where: '--url', what: 'not a URL of http or https', got: url, allowed });
}
