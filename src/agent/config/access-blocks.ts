import * as z from 'zod';
import {
  type ClientAuth,
  type ClientTls,
  clientAuthTypes,
  type ListenerAuth,
  type ListenerTls,
  type Secret,
  tlsVersions,
} from '../../core/access.ts';
import { bcryptForm } from '../../reporters/listen/auth.ts';
import { cipherSuites, curves } from '../../reporters/listen/certificates.ts';

/** These checks also run on invalid parts, so that one run reports all faults. */
const always = { when: () => true } as const;

const has = (value: unknown, key: string): boolean =>
  typeof value === 'object' && value !== null && (value as Record<string, unknown>)[key] !== undefined;

/** A check that exactly one of these keys is present, whatever else is wrong. */
const oneOf = (...keys: string[]) =>
  [
    (value: unknown) => keys.filter((key) => has(value, key)).length === 1,
    { ...always, error: `not exactly one of ${keys.join(' and ')}; use one of them` },
  ] as const;

/** A check that both keys are present, or none. */
const together = (one: string, other: string) =>
  [
    (value: unknown) => has(value, one) === has(value, other),
    { ...always, error: `${one} and ${other} go together; set both or none` },
  ] as const;

const file = z.string().min(1);

export const secretBlock: z.ZodType<Secret> = z
  .union([
    z.string().min(1).describe('The secret itself. Prefer env or file.'),
    z
      .strictObject({
        env: z.string().min(1).optional().describe('Name of an environment variable.'),
        file: file.optional().describe('Path of a file; read at each use, without a trailing newline.'),
      })
      .refine(...oneOf('env', 'file'))
      .transform((secret) => secret as Secret),
  ])
  .describe('A secret: {env: NAME}, {file: PATH}, or literal.');

const basicBlock = z
  .strictObject({ username: z.string().min(1).describe('User name.'), password: secretBlock })
  .describe('Basic authentication.');

export const clientAuthBlock: z.ZodType<ClientAuth> = z
  .strictObject({ bearer: secretBlock.optional(), basic: basicBlock.optional() })
  .refine(...oneOf('bearer', 'basic'))
  .describe('Credentials sent with each request.');

export const clientTlsBlock: z.ZodType<ClientTls> = z
  .strictObject({
    caFile: file.optional().describe('Authorities to trust instead of the system’s.'),
    certFile: file.optional().describe('PEM file of the client certificate.'),
    keyFile: file.optional().describe('PEM file of the key of the certificate.'),
    serverName: z.string().min(1).optional().describe('Name that the certificate must have.'),
    insecure: z.boolean().optional().describe('Accepts any certificate.'),
  })
  .refine(...together('certFile', 'keyFile'))
  .describe('TLS settings of the connection.');

/** One of our keys in the spelling of the Prometheus web configuration. */
export const snake = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

type BlockShape = Record<string, z.ZodType>;
type BlockValues<S extends BlockShape> = { [K in keyof S]?: z.output<S[K]> };
/** Adds a fault at a key in the spelling of the file, or at the map itself. */
type Refuse = (key: string | undefined, message: string) => void;

/** All keys in both spellings; none is required. */
function bothSpellings(shape: BlockShape): Record<string, z.ZodType> {
  return Object.fromEntries(
    Object.entries(shape).flatMap(([key, value]) => [
      [key, value.optional()],
      [snake(key), value.optional()],
    ]),
  );
}

/** JSON Schema for keys that are required in one of their spellings. */
function schemaOf(required: readonly string[]): { allOf?: unknown } {
  const inEither = (key: string) => ({ anyOf: [{ required: [key] }, { required: [snake(key)] }] });
  return required.length > 0 ? { allOf: required.map(inEither) } : {};
}

/** The map in our spelling. */
function ours(written: object, keys: readonly string[]): Record<string, unknown> {
  const values = written as Record<string, unknown>;
  return Object.fromEntries(
    keys.flatMap((key) => {
      const value = values[key] ?? values[snake(key)];
      return value === undefined ? [] : [[key, value]];
    }),
  );
}

/**
 * A map whose keys may be in our spelling (`certFile`) or in the Prometheus web configuration's (`cert_file`), each once. The
 * keys in `required` must be present and are strings. `rules` are called with the map in our spelling, even if parts of it are
 * invalid.
 */
function spelledEitherWay<S extends BlockShape>(
  shape: S,
  required: readonly (keyof S & string)[],
  rules: (values: BlockValues<S>, refuse: Refuse) => void,
) {
  const keys = Object.keys(shape);
  return z
    .strictObject(bothSpellings(shape))
    .check(
      z.superRefine((written, context) => {
        const isSnake = keys.some((key) => key !== snake(key) && has(written, snake(key)));
        const refuse: Refuse = (key, message) => {
          const spelt =
            key && (has(written, snake(key)) || (isSnake && !has(written, key)) ? snake(key) : key);
          context.addIssue({ code: 'custom', message, path: spelt ? [spelt] : [] });
        };
        for (const key of keys) {
          if (key !== snake(key) && has(written, key) && has(written, snake(key)))
            refuse(key, `the same key as ${key}; keep one of them`);
        }
        for (const key of required) {
          if (!has(written, key) && !has(written, snake(key))) refuse(key, 'missing; set it to a string');
        }
        rules(ours(written, keys) as BlockValues<S>, refuse);
      }, always),
    )
    .meta(schemaOf(required))
    .transform((written) => ours(written, keys) as BlockValues<S>);
}

const words = (table: Readonly<Record<string, string>>) => z.array(z.enum(Object.keys(table))).min(1);

const tlsShape = {
  certFile: file.describe('PEM file of the certificate, leaf first; read again when it changes.'),
  keyFile: file.describe('PEM file of the key of the certificate, without a passphrase.'),
  clientCaFile: file.describe('PEM file of the authorities whose client certificates are verified.'),
  clientAuthType: z
    .enum(clientAuthTypes)
    .describe(
      'Whether client certificates are requested and verified. Default with clientCaFile: RequireAndVerifyClientCert.',
    ),
  clientAllowedSans: z
    .array(z.string().min(1))
    .min(1)
    .describe(
      'DNS names, addresses, e-mail addresses or URIs; a client certificate must have at least one of them.',
    ),
  minVersion: z.enum(tlsVersions).describe('Minimum version of TLS. Default: TLS12.'),
  maxVersion: z.enum(tlsVersions).describe('Maximum version of TLS. Default: TLS13.'),
  cipherSuites: words(cipherSuites).describe('Cipher suites of TLS 1.2, by Go’s names.'),
  preferServerCipherSuites: z
    .boolean()
    .describe('Whether the listener’s order of cipher suites is used. Default: true.'),
  curvePreferences: words(curves).describe('Curves by Go’s names, the preferred one first.'),
};

/** Checks the other keys that the policy for client certificates needs. */
function clientRules(
  { clientAuthType, clientCaFile, clientAllowedSans }: Partial<ListenerTls>,
  refuse: Refuse,
) {
  const verifies = clientAuthType?.includes('Verify') ?? clientCaFile !== undefined;
  if (verifies && clientCaFile === undefined) {
    refuse('clientCaFile', 'missing; name the authorities whose client certificates are verified');
  }
  if (!verifies && clientCaFile !== undefined) {
    refuse(
      'clientAuthType',
      'verifies no client although clientCaFile is set; use RequireAndVerifyClientCert',
    );
  }
  if (!verifies && clientAllowedSans) {
    refuse('clientAllowedSans', 'has no effect without clientCaFile; set clientCaFile, too');
  }
}

/** The schema of a listener's `tls`: the keys of `tls_server_config` (docs/how-to/export.md, Protect the listeners). */
export const listenerTlsBlock = spelledEitherWay(tlsShape, ['certFile', 'keyFile'], (tls, refuse) => {
  clientRules(tls, refuse);
  if (tls.minVersion === 'TLS13' && tls.maxVersion === 'TLS12') {
    refuse('maxVersion', 'below the lowest version; use TLS13');
  }
}).describe(
  'TLS of a listener, by the keys of tls_server_config in the Prometheus web configuration.',
) as z.ZodType<ListenerTls>;

const userName = z.string().regex(/^[^:]+$/, 'not a user name; use a name without a colon');
const passwordHash = z.string().refine(bcryptForm.holds, bcryptForm.fault);

const authShape = {
  bearer: secretBlock,
  basic: basicBlock,
  basicAuthUsers: z
    .record(userName, passwordHash)
    .refine((users) => Object.keys(users).length > 0, 'empty; give at least one user')
    .describe('bcrypt hashes of passwords by user.'),
};

/** The schema of a listener's `auth` (docs/how-to/export.md, Protect the listeners). */
export const listenerAuthBlock = spelledEitherWay(authShape, [], (auth, refuse) => {
  if (Object.keys(auth).length > 0) return;
  refuse(undefined, 'no credentials, so no client could log in; set basicAuthUsers, basic or bearer');
}).describe(
  'Credentials; a client must present one of them. /health and /ready are open.',
) as z.ZodType<ListenerAuth>;
