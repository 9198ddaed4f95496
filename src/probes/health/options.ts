import type { ClientAuth, ClientTls } from '../../core/access.ts';

/** `services.<service>.health`, defaults filled in. */
export interface HealthOptions {
  /** `http:`, `https:`, `grpc:`, `grpcs:` or `tcp:`. */
  url: string;
  intervalMs: number;
  /** Never over the interval. */
  timeoutMs: number;
  /** Answers in a row that turn the state to down, and to up again. */
  failureThreshold: number;
  successThreshold: number;
  tls?: ClientTls;
  auth?: ClientAuth;
}
