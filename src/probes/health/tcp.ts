import type { Finding } from '../probe.ts';
import { type Dial, type HealthDeps, lookOver } from './look.ts';

/** Whether somebody accepts a connection, and with TLS shakes hands; not a byte is exchanged besides. */
export function tcpHealth(dial: Dial, deps: HealthDeps, signal: AbortSignal): Promise<Finding> {
  const heard = { msg: 'accepts connections', details: { protocol: 'tcp' } };
  return lookOver(dial, deps, signal, () => Promise.resolve(heard));
}
