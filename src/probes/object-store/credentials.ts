import { errorText } from '../../core/errors.ts';
import { untilAborted } from '../connection.ts';
import { excerpt, ProbeError } from '../probe.ts';

/** A pair of keys, with the token that temporary ones have. */
export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

export interface CredentialSource {
  /**
   * The credentials of the AWS SDK's default chain: environment, shared files (`~/.aws`), web identity, container
   * and instance metadata. Temporary ones are kept until shortly before they expire, others are read again each time.
   * Undefined when none are configured. Throws ProbeError: `credentials` for those that are configured and cannot be
   * used, `too_slow` when the signal aborts.
   */
  read(signal: AbortSignal): Promise<Credentials | undefined>;
}

/** Where credentials come from, for messages. */
export const credentialPlaces =
  'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a shared credentials file, a web identity or an instance role';

/** Variables that ask for credentials: with one of them set, finding none is a fault. */
const configuredBy = [
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_PROFILE',
  'AWS_SHARED_CREDENTIALS_FILE',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
];

/** For requests to the token service; those to instance metadata have a second each by default. */
const requestTimes = { connectionTimeout: 3000, requestTimeout: 10_000 };

type Provider = () => Promise<Credentials & { expiration?: Date }>;

/** Loads the SDK's chain at the first use. `region`: of the token service, where the environment has none. */
export function createCredentialSource(region: string): CredentialSource {
  let provider: Provider | undefined;
  const open = async (): Promise<Provider> => {
    // It would print on standard error, which is the agent's log, that it drops support for the oldest Node.
    process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
    const { defaultProvider } = await import('./credential-chain.ts');
    const clientConfig = { region: process.env.AWS_REGION ?? region, requestHandler: requestTimes };
    return defaultProvider({ ignoreCache: true, clientConfig });
  };
  return {
    async read(signal) {
      try {
        provider ??= await open();
        const found = await untilAborted(provider(), signal);
        if (found.expiration === undefined) provider = undefined;
        const { accessKeyId, secretAccessKey, sessionToken } = found;
        return { accessKeyId, secretAccessKey, sessionToken };
      } catch (error) {
        provider = undefined;
        if (signal.aborted) throw new ProbeError('too_slow', 'the credentials were not read in time', error);
        const asked = configuredBy.filter((name) => process.env[name]);
        if (asked.length === 0 && isNoneFound(error)) return undefined;
        const where = asked.length === 0 ? '' : ` (${asked.join(', ')} is set)`;
        throw new ProbeError('credentials', `no credentials: ${excerpt(errorText(error))}${where}`, error);
      }
    },
  };
}

/** No provider of the chain is configured; any other error is one of a provider that is. */
const isNoneFound = (error: unknown): boolean =>
  error instanceof Error && error.name === 'CredentialsProviderError';
