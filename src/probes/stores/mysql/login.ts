import type { Socket } from 'node:net';
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { Connection } from 'mysql2';
import { certificateFault, earliestEndMs, tlsOptions } from '../../connection/certificate.ts';
import type { Trace } from '../../connection/connect.ts';
import type { StoreTarget } from '../store.ts';

/** Who asks if the configuration names nobody. */
const usualUser = 'svc_agent';

/** What of the driver's connection its types do not show. */
export interface Inner {
  /** The socket that is spoken over: once TLS has begun, not the one that was given. */
  stream: Socket;
  packetParser: { execute(bytes: Buffer): void };
  startTLS(onSecure: (fault?: Error) => void): void;
}

/**
 * Has the connection judge the certificate as every other probe does, before the password is sent. Left to itself
 * the driver compares the certificate of a server that is dialled by an IP address with the name `localhost`.
 */
function secureOurWay(inner: Inner, options: ConnectionOptions, isTrusting: boolean, trace: Trace): void {
  inner.startTLS = (onSecure) => {
    trace.enter('tls');
    const raw = inner.stream;
    raw.removeAllListeners('data');
    let isSecure = false;
    const secure: TLSSocket = tlsConnect({ ...options, socket: raw }, () => {
      isSecure = true;
      trace.tlsNotAfterMs = earliestEndMs(secure);
      trace.enter('first_byte');
      onSecure(isTrusting ? undefined : certificateFault(secure));
    });
    secure.on('error', (error) => {
      // Before the handshake's end the driver waits to be told; after it, the end of its first socket tells it.
      if (isSecure) raw.destroy(error);
      else onSecure(error);
    });
    secure.on('data', (bytes: Buffer) => inner.packetParser.execute(bytes));
    inner.stream = secure;
  };
}

export interface Greeted {
  /** On which the server has greeted. */
  socket: Socket;
  trace: Trace;
  /** Told of what ends the connection while no statement is under way. */
  broken(error: Error): void;
}

/** Logs in over a socket. */
export type LogIn = (greeted: Greeted) => Promise<Connection>;

/**
 * Loads the driver and reads what login needs, before anything is opened: a socket that ended while the driver was
 * not yet listening would leave it waiting. Throws `ProbeError` (`credentials`) for TLS files.
 */
export async function preparedLogin({ address, user, password, tls }: StoreTarget): Promise<LogIn> {
  // The driver is CommonJS: bundled, it has only the default export.
  const { createConnection } = (await import('mysql2')).default;
  const options = tls && (await tlsOptions(address.host, tls));
  return ({ socket, trace, broken }) =>
    new Promise((resolve, reject) => {
      const connection = createConnection({
        stream: () => socket,
        host: address.host,
        user: user ?? usualUser,
        password,
        // That TLS is wanted; with which certificates stands in `options`.
        ssl: tls && {},
        connectAttributes: { program_name: 'svc-agent' },
        // No server asks for files of ours.
        flags: ['-LOCAL_FILES'],
        // Time is the signal's.
        connectTimeout: 0,
        disableEval: true,
        typeCast: (field) => field.string('utf8'),
      });
      // Without a listener the driver throws it into the process.
      connection.on('error', broken);
      if (options) secureOurWay(connection as unknown as Inner, options, tls?.insecure === true, trace);
      connection.connect((error) => (error ? reject(error) : resolve(connection)));
    });
}
