import type { Socket } from 'node:net';
import type { OpenHandshakes } from '../core/access.ts';
import type { Clock, Log } from '../core/ports.ts';
import type { ServiceConfig } from './config/types.ts';

export interface StreamTlsDeps {
  clock: Clock;
  log: Log;
}

const handshakeMs = 10_000;

/** TLS of the streams that a service's role writes to; undefined where they are in the clear. */
export async function streamTls(
  { name, statsd }: Pick<ServiceConfig, 'name' | 'statsd'>,
  { clock, log }: StreamTlsDeps,
): Promise<OpenHandshakes<Socket> | undefined> {
  const tls = statsd?.tls;
  if (!tls) return undefined;
  const { createHandshakes } = await import('../reporters/listen/handshakes.ts');
  const place = `services.${name}.statsd.tls`;
  return (outcome) =>
    createHandshakes({ tls, handshakeMs }, { place, nowMs: clock.nowMs, log, ...outcome }).begin;
}

/** The listener that follows says what there is to say. */
const silent: Log = { write() {}, named: () => silent };

/** Throws `listen_failed` if these files cannot serve: a reload asks before it gives up what does. */
export async function checkStreamTls(service: ServiceConfig, clock: Clock): Promise<void> {
  const open = await streamTls(service, { clock, log: silent });
  open?.({ onSecure: () => {}, onFailure: () => {} });
}
