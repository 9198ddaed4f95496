import { errorText, systemCode } from '../../../core/errors.ts';
import type { StoreFailureReason } from '../../../core/reasons.ts';
import { connectionFault, ProbeError } from '../../probe-error.ts';
import type { StoreFault } from '../store.ts';
import { refusalOf } from './answer.ts';

/** The other end speaks, but not MySQL's protocol. */
export class ProtocolFailure extends Error {
  constructor(msg: string) {
    super(msg);
    this.name = 'ProtocolFailure';
  }
}

/** Errors that the server sends, by number; any other is `query_failed`. */
const byErrno: Readonly<Record<number, StoreFailureReason>> = {
  1040: 'too_many_connections',
  1203: 'too_many_connections',
  1226: 'too_many_connections',
  1044: 'denied',
  1129: 'denied', // the host is blocked after too many broken connections
  1130: 'denied', // the host is not let in
  1142: 'denied',
  1143: 'denied',
  1227: 'denied',
  1045: 'credentials',
  1251: 'credentials', // the account logs in by what the driver does not speak
  1524: 'credentials', // the account logs in by a plugin that the server has not loaded
  1698: 'credentials',
  1820: 'credentials', // the password has expired
  1862: 'credentials',
  3118: 'credentials', // the account is locked
  4150: 'credentials', // MariaDB: blocked after wrong passwords
  4151: 'credentials', // MariaDB: the account is locked
  3159: 'tls', // TLS is demanded
  1049: 'database_missing',
  1053: 'shutting_down',
  1079: 'shutting_down',
  1080: 'shutting_down',
  1927: 'reset', // MariaDB: the connection was killed
  3169: 'reset', // MySQL: the session was killed
  4031: 'reset',
};

/** What the driver itself says, by its code. */
const byCode: Readonly<Record<string, StoreFailureReason>> = {
  PROTOCOL_CONNECTION_LOST: 'reset',
  PROTOCOL_SEQUENCE_TIMEOUT: 'too_slow',
  HANDSHAKE_NO_SSL_SUPPORT: 'tls',
  HANDSHAKE_SSL_ERROR: 'tls',
  AUTH_SWITCH_PLUGIN_ERROR: 'credentials',
  MYSQL_CLEAR_PASSWORD_NOT_ENABLED: 'credentials',
};
/** Codes of bytes that are not what they should be. */
const malformed = /^(?:PROTOCOL_|HANDSHAKE_|ERR_OUT_OF_RANGE$|ERR_BUFFER_OUT_OF_BOUNDS$)/;

function reasonOf(thrown: unknown): StoreFailureReason {
  if (thrown instanceof ProbeError) return thrown.reason;
  if (thrown instanceof ProtocolFailure) return 'protocol';
  const refusal = refusalOf(thrown);
  if (refusal !== undefined) return byErrno[refusal.errno] ?? 'query_failed';
  const code = systemCode(thrown) ?? '';
  if (Object.hasOwn(byCode, code)) return byCode[code]!;
  return malformed.test(code) ? 'protocol' : connectionFault(thrown).reason;
}

const advice: Readonly<Record<number, string>> = {
  1129: 'run FLUSH HOSTS there once the cause is gone',
  3159: 'give the store a tls block',
};
const unknownPlugin = /authentication using unknown plugin ([\w-]+)/;

function textOf(thrown: unknown): string {
  const plugin = unknownPlugin.exec(errorText(thrown))?.[1];
  if (plugin !== undefined) {
    return `the account logs in by ${plugin}, which the agent does not speak; use mysql_native_password or caching_sha2_password`;
  }
  const refusal = refusalOf(thrown);
  if (refusal === undefined) return connectionFault(thrown).msg;
  const then = advice[refusal.errno];
  return `${refusal.message} (${refusal.errno})${then === undefined ? '' : `; ${then}`}`;
}

const mostCharacters = 300;

/** What the driver, the server or the network threw, in the agent's words, on one line. */
export function faultOf(thrown: unknown): StoreFault {
  const line = textOf(thrown)
    .replace(/[\u0000-\u001f\u007f]+/g, ' ')
    .trim();
  const msg = line.length > mostCharacters ? `${line.slice(0, mostCharacters)}…` : line;
  return { reason: reasonOf(thrown), msg };
}
