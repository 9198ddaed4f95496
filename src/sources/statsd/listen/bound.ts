import { type Address, parseAddress } from '../../../core/address.ts';
import { AgentError } from '../../../core/errors.ts';

/** A bound listener. */
export interface Bound {
  /** `host:port` with the port it got, or the path. */
  readonly address: string;
  /** Stops receiving. What was received is still counted. */
  close(): Promise<void>;
}

/** `host:port` of the configuration taken apart. Throws `AgentError` (`config_invalid`) for anything else. */
export function addressOf(where: string, text: string): Address {
  const address = parseAddress(text);
  if (address !== undefined) return address;
  const allowed = 'use host:port, such as 127.0.0.1:8125 or [::1]:8125';
  throw new AgentError('config_invalid', { where, what: 'not an address', got: text, allowed });
}
