import type { ClientAuth, ClientTls, Secret } from '../../core/access.ts';

/** `hostedmetrics`, defaults filled in. */
export interface HostedOptions {
  protocol: 'otlp' | 'remotewrite';
  endpoint: string;
  headers: Readonly<Record<string, Secret>>;
  auth?: ClientAuth;
  tls?: ClientTls;
  timeoutMs: number;
  /** What an outage may cost on disk; oldest dropped first. */
  queue: { maxBytes: number; maxAgeMs: number };
}
