import * as z from 'zod';
import { clientAuthTypes, type ListenerAuth, type ListenerTls, tlsVersions } from '../../core/access.ts';
import { bcryptForm } from '../../reporters/listen/auth.ts';
import { cipherSuites, curves } from '../../reporters/listen/certificates.ts';
import { basicBlock, secretBlock } from './access-blocks.ts';
import { type Refuse, spelledEitherWay } from './spelling.ts';

const file = z.string().min(1);
const words = (table: Readonly<Record<string, string>>) => z.array(z.enum(Object.keys(table))).min(1);

const tlsShape = {
  certFile: file.describe('PEM file of the certificate, leaf first; read again when it changes.'),
  keyFile: file.describe('PEM file of its key, without a passphrase.'),
  clientCaFile: file.describe('PEM file of the authorities whose client certificates are verified.'),
  clientAuthType: z
    .enum(clientAuthTypes)
    .describe('Which client certificates are asked for; with clientCaFile RequireAndVerifyClientCert.'),
  clientAllowedSans: z
    .array(z.string().min(1))
    .min(1)
    .describe('DNS names, addresses, e-mails or URIs of which a client certificate must have one.'),
  minVersion: z.enum(tlsVersions).describe('Lowest version of TLS; TLS12 if not told.'),
  maxVersion: z.enum(tlsVersions).describe('Highest version of TLS; TLS13 if not told.'),
  cipherSuites: words(cipherSuites).describe('Cipher suites of TLS 1.2, by Go’s names.'),
  preferServerCipherSuites: z.boolean().describe('Whether our order of suites counts; true if not told.'),
  curvePreferences: words(curves).describe('Curves by Go’s names, the preferred one first.'),
};

/** What the policy for client certificates needs beside it. */
function clientRules(
  { clientAuthType, clientCaFile, clientAllowedSans }: Partial<ListenerTls>,
  refuse: Refuse,
) {
  const verifies = clientAuthType?.includes('Verify') ?? clientCaFile !== undefined;
  if (verifies && clientCaFile === undefined) {
    refuse('clientCaFile', 'missing; name the authorities whose client certificates are verified');
  }
  if (!verifies && clientCaFile !== undefined) {
    refuse('clientAuthType', 'verifies nobody though there is a client CA; use RequireAndVerifyClientCert');
  }
  if (!verifies && clientAllowedSans) {
    refuse('clientAllowedSans', 'names that nobody verifies; set the client CA too');
  }
}

/** `tls` of a listener: the keys of `tls_server_config` (CONTRACT, `tls`). */
export const listenerTlsBlock = spelledEitherWay(tlsShape, ['certFile', 'keyFile'], (tls, refuse) => {
  clientRules(tls, refuse);
  if (tls.minVersion === 'TLS13' && tls.maxVersion === 'TLS12') {
    refuse('maxVersion', 'below the lowest version; use TLS13');
  }
}).describe(
  'TLS of a listener, by the keys of tls_server_config in the Prometheus web configuration.',
) as z.ZodType<ListenerTls>;

const userName = z.string().regex(/^[^:]+$/, 'not a user name; use one without a colon');
const passwordHash = z.string().refine(bcryptForm.holds, bcryptForm.fault);

const authShape = {
  bearer: secretBlock,
  basic: basicBlock,
  basicAuthUsers: z
    .record(userName, passwordHash)
    .refine((users) => Object.keys(users).length > 0, 'empty; give at least one')
    .describe('bcrypt hashes of passwords by user.'),
};

/** `auth` of a listener (CONTRACT, `auth`). */
export const listenerAuthBlock = spelledEitherWay(authShape, [], (auth, refuse) => {
  if (Object.keys(auth).length > 0) return;
  refuse(undefined, 'no credentials, so nobody could get in; set basicAuthUsers, basic or bearer');
}).describe(
  'Credentials of which a client must show one; /health and /ready are open.',
) as z.ZodType<ListenerAuth>;
