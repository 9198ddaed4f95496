import * as z from 'zod';
import type { ClientAuth, ClientTls, Secret } from '../../core/access.ts';

/** These checks run also where the parts are at fault, so that all faults come at once. */
export const always = { when: () => true } as const;

export const has = (value: unknown, key: string): boolean =>
  typeof value === 'object' && value !== null && (value as Record<string, unknown>)[key] !== undefined;

/** Exactly one of these keys, whatever else is wrong. */
const oneOf = (...keys: string[]) =>
  [
    (value: unknown) => keys.filter((key) => has(value, key)).length === 1,
    { ...always, error: `not exactly one of ${keys.join(' and ')}; use one of them` },
  ] as const;

/** Both keys or none. */
const together = (one: string, other: string) =>
  [
    (value: unknown) => has(value, one) === has(value, other),
    { ...always, error: `${one} and ${other} go together; set both or none` },
  ] as const;

const file = z.string().min(1);

export const secretBlock: z.ZodType<Secret> = z
  .union([
    z.string().min(1).describe('The secret itself; better name where it is.'),
    z
      .strictObject({
        env: z.string().min(1).optional().describe('Name of an environment variable.'),
        file: file.optional().describe('Path of a file; read again at each use, a last newline is left out.'),
      })
      .refine(...oneOf('env', 'file'))
      .transform((secret) => secret as Secret),
  ])
  .describe('A secret: {env: NAME}, {file: PATH}, or literal.');

export const basicBlock = z.strictObject({ username: z.string().min(1), password: secretBlock });

export const clientAuthBlock: z.ZodType<ClientAuth> = z
  .strictObject({ bearer: secretBlock.optional(), basic: basicBlock.optional() })
  .refine(...oneOf('bearer', 'basic'))
  .describe('Credentials sent with each request.');

export const clientTlsBlock: z.ZodType<ClientTls> = z
  .strictObject({
    caFile: file.optional().describe('Authorities to trust instead of the system’s.'),
    certFile: file.optional(),
    keyFile: file.optional(),
    serverName: z.string().min(1).optional().describe('Name the certificate must have.'),
    insecure: z.boolean().optional().describe('Takes any certificate.'),
  })
  .refine(...together('certFile', 'keyFile'));
