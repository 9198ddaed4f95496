import { authorizationOf, type ClientAuth, type ClientTls, type ReadSecret } from '../../core/access.ts';
import type { Address } from '../../core/address.ts';
import type { Clock } from '../../core/ports.ts';
import type { Lookup } from '../connection/connect.ts';
import {
  type Connection,
  type ConnectOptions,
  connectTo,
  createTrace,
  type Trace,
} from '../connection/connect.ts';
import type { Finding } from '../probe.ts';
import { ProbeError } from '../probe-error.ts';
import { type HealthFault, healthFault } from './failure.ts';

export interface HealthDeps {
  clock: Pick<Clock, 'monotonicMs'>;
  readSecret: ReadSecret;
  /** The system's unless given. */
  lookup?: Lookup;
}

/** Where to connect, and how. */
export interface Dial {
  address: Address;
  /** TLS is spoken when this is there, be it empty. */
  tls?: ClientTls;
  protocols?: ConnectOptions['protocols'];
  auth?: ClientAuth;
}

/** A connection that is open, and what goes with a request over it. */
export interface Line extends Connection {
  trace: Trace;
  /** Headers with the credentials; none without. */
  credentials: Readonly<Record<string, string>>;
}

/** What is found over a connection that is open. */
export interface Heard {
  /** Undefined when the role is well. */
  fault?: HealthFault;
  /** What a person reads when it is well. */
  msg: string;
  details?: Readonly<Record<string, unknown>>;
  remember?: unknown;
}

async function credentialsOf(
  auth: ClientAuth | undefined,
  readSecret: ReadSecret,
): Promise<Record<string, string>> {
  const authorization = await authorizationOf(auth, readSecret).catch((error: unknown) => {
    throw new ProbeError('credentials', 'the credentials of the health check cannot be read', error);
  });
  if (authorization === undefined) return {};
  // Said here, where the text is not shown: others put what they refuse into their message.
  if (!/^[\x20-\x7e]*$/.test(authorization)) {
    throw new ProbeError('credentials', 'the credentials hold a character that no header may have');
  }
  return { authorization };
}

function finding(heard: Heard, trace: Trace, connection: Connection | undefined): Finding {
  const { fault, msg, details, remember } = heard;
  const { phasesMs, dialled, tlsNotAfterMs } = trace;
  return {
    reason: fault?.reason,
    msg: fault?.msg ?? msg,
    phasesMs,
    tlsNotAfterMs,
    details: { address: dialled, tlsVersion: connection?.tlsVersion, ...details },
    remember,
  };
}

/**
 * One look over a connection of its own, which is closed when it settles. `hear` may throw; what is thrown is a
 * finding, with what was learnt until then and with `remember` as it was.
 */
export async function lookOver(
  { address, tls, protocols, auth }: Dial,
  { clock, readSecret, lookup }: HealthDeps,
  signal: AbortSignal,
  hear: (line: Line) => Promise<Heard>,
  recalled?: unknown,
): Promise<Finding> {
  const trace = createTrace(clock);
  let connection: Connection | undefined;
  try {
    const credentials = await credentialsOf(auth, readSecret);
    connection = await connectTo(address, { tls, protocols, lookup, trace }, signal);
    return finding(await hear({ ...connection, trace, credentials }), trace, connection);
  } catch (error) {
    trace.end();
    const fault = healthFault(error, trace.phase, signal);
    return finding({ fault, msg: fault.msg, remember: recalled }, trace, connection);
  } finally {
    connection?.socket.destroy();
  }
}
