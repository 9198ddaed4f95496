import { isIP } from 'node:net';
import * as z from 'zod';
import type { ListenerTls } from '../../core/access.ts';
import { interval, listenAddress, parsedAs } from '../../core/text-formats.ts';

/** The form of tags: `auto` reads any of four forms, `none` reads none, and each other value reads only its own form. */
const statsdTagFormats = ['auto', 'suffix', 'dogstatsd', 'influx', 'librato', 'none'] as const;
export type StatsdTagFormat = (typeof statsdTagFormats)[number];

/** The options of `services.<service>.statsd`, with defaults filled in. At least one of `listen`, `tcp` and `unix` is set. */
export interface StatsdOptions {
  /** host:port for datagrams; port 0 selects a free port. */
  listen?: string;
  /** host:port for newline-separated lines over TCP. */
  tcp?: string;
  /** TLS of the streams over TCP; set only with `tcp`. */
  tls?: ListenerTls;
  /** Path of a stream socket, with lines as over TCP. Every user who can enter its directory can write to it. */
  unix?: string;
  /** Addresses or CIDR ranges of allowed senders. If it is empty, only this machine is allowed. */
  senders: readonly string[];
  /** Requested size of the kernel's receive buffer; the kernel grants at most `net.core.rmem_max`. */
  receiveBufferBytes: number;
  /** The form of tags that is read; default `auto`. */
  tagFormat?: StatsdTagFormat;
  /** Further tag names of the suffix form. Only known names can be distinguished from values. */
  tagKeys?: readonly string[];
  /** First parts of names, one for each sender with a prefix of its own; a prefix is removed together with the dot after it. */
  prefixes?: readonly string[];
  /** A series ends after this time without a line. Default: a day. */
  expireMs?: number;
}

const defaultReceiveBufferBytes = 4 * 1024 * 1024;
const sender =
  /^(?:\d{1,3}(?:\.\d{1,3}){3}(?:\/(?:[0-9]|[12][0-9]|3[0-2]))?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:\/\d{1,3})?)$/;
const senderFault = 'not an address or range; use the form 10.0.0.0/8 or fd00::/8';

/** Whether a text is an address, or a range whose prefix is no longer than an address of its kind. */
function isSender(text: string): boolean {
  const [address = '', bits = '0'] = text.split('/');
  const family = isIP(address);
  return family !== 0 && Number(bits) <= (family === 4 ? 32 : 128);
}

/** The kernel’s limit is 108 bytes with the NUL at the end. Node.js would cut a longer path off and listen somewhere else. */
const mostPathBytes = 107;

const address = () => z.string(listenAddress.fault).transform(parsedAs(listenAddress));

/** The schema of `services.<service>.statsd`: host:port for datagrams, or a map. */
export const statsdBlock = (access: { tls: z.ZodType<ListenerTls> }) => {
  const full = z
    .strictObject({
      listen: address().optional().describe('host:port for datagrams.'),
      tcp: address().optional().describe('host:port for newline-separated lines over TCP.'),
      tls: access.tls.optional(),
      unix: z
        .string()
        .min(1)
        .refine((path) => Buffer.byteLength(path) <= mostPathBytes, {
          error: `longer than ${mostPathBytes} bytes, the limit of a socket’s path; use a shorter path`,
        })
        .optional()
        .describe('Path of a Unix stream socket for newline-separated lines, as over TCP.'),
      senders: z
        .array(z.string().regex(sender, senderFault).refine(isSender, senderFault))
        .default([])
        .describe('Addresses or ranges of allowed senders; if empty, this machine only.'),
      receiveBufferBytes: z
        .int()
        .min(4096)
        .default(defaultReceiveBufferBytes)
        .describe('Receive buffer of the socket, which the kernel may limit.'),
      tagFormat: z.enum(statsdTagFormats).optional().describe('The form of tags; default: any.'),
      tagKeys: z.array(z.string().min(1)).optional().describe('Further tag names of the suffix form.'),
      prefix: z
        .union([z.string().min(1), z.array(z.string().min(1))])
        .transform((one): readonly string[] => (typeof one === 'string' ? [one] : one))
        .optional()
        .describe('Prefix that is removed from every name; a list if senders have different prefixes.'),
      expire: z
        .string(interval.fault)
        .transform(parsedAs(interval))
        .optional()
        .describe('Removes a series that has not been updated for this long. Default: 24h.'),
    })
    .refine(({ listen, tcp, unix }) => (listen ?? tcp ?? unix) !== undefined, {
      when: ({ value }) => typeof value === 'object' && value !== null,
      error: 'no address to listen on; set listen, tcp or unix',
    })
    .refine(({ tcp, tls }) => tls === undefined || tcp !== undefined, {
      when: ({ value }) => typeof value === 'object' && value !== null,
      path: ['tls'],
      error: 'applies only to streams over TCP; set tcp, too',
    })
    .transform(
      ({ expire, prefix, ...rest }): StatsdOptions => ({
        ...rest,
        ...(prefix && { prefixes: prefix }),
        ...(expire !== undefined && { expireMs: expire }),
      }),
    );
  const short = z
    .string()
    .transform(parsedAs(listenAddress))
    .transform((listen): z.input<typeof full> => ({ listen }))
    .pipe(full);
  return z.union([short, full]).describe('Where the role’s pushed metrics are received.');
};
