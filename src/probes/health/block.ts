import * as z from 'zod';
import type { ClientAuth, ClientTls } from '../../core/access.ts';
import { parsedAs, type TextFormat, webAddress } from '../../core/text-formats.ts';
import { timedBlock } from '../timing-block.ts';

/** The options of `services.<service>.health`, with defaults filled in. */
export interface HealthOptions {
  /** A URL with `http:`, `https:`, `grpc:`, `grpcs:` or `tcp:`. */
  url: string;
  intervalMs: number;
  /** Never longer than the interval. */
  timeoutMs: number;
  /** How many failures in a row mean that the role is down, and how many successes in a row that it is up again. */
  failureThreshold: number;
  successThreshold: number;
  tls?: ClientTls;
  auth?: ClientAuth;
}

const target = webAddress(['http', 'https', 'grpc', 'grpcs', 'tcp'], 'http://127.0.0.1:7933/health');

/** The format of a target. Only http and https have a default port. */
const targetWithPort: TextFormat<string> = {
  fault: 'names no port; add the port after the host, such as grpc://127.0.0.1:7833 or tcp://127.0.0.1:7833',
  read(text) {
    const { protocol, port } = new URL(text);
    return port !== '' || protocol === 'http:' || protocol === 'https:' ? text : undefined;
  },
};

/** The schema of `services.<service>.health`: a URL, or a map with a `url`. */
export const healthBlock = (access: { tls: z.ZodType<ClientTls>; auth: z.ZodType<ClientAuth> }) => {
  const threshold = (usual: number, what: string) => z.int().min(1).max(100).default(usual).describe(what);
  const full: z.ZodType<HealthOptions> = timedBlock(
    {
      url: z
        .string(target.fault)
        .transform(parsedAs(target))
        .transform(parsedAs(targetWithPort))
        .describe('URL with the scheme http, https, grpc, grpcs or tcp.'),
      failureThreshold: threshold(3, 'Failures in a row after which the role is down.'),
      successThreshold: threshold(1, 'Successes in a row after which it is up again.'),
      tls: access.tls.optional(),
      auth: access.auth.optional(),
    },
    { interval: '15s', timeoutMs: 5000 },
  );
  const short = z
    .string(target.fault)
    .transform(parsedAs(target))
    .transform(parsedAs(targetWithPort))
    .transform((url) => ({ url }))
    .pipe(full as z.ZodType<HealthOptions, { url: string }>);
  return z.union([short, full]).describe('The role’s health endpoint: a URL, or a map with the key url.');
};
