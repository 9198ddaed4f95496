import { parseAddress } from '../../core/address.ts';
import { type TextFormat, webAddress } from '../../core/text-formats.ts';

/** Where an object store is reached. */
export interface Endpoint {
  /** Scheme, host and port. */
  origin: string;
  /** The URL before the bucket, without a slash at the end. */
  basePath: string;
}

const web = webAddress(['http', 'https'], 'https://s3.example.com');
const hostName = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;

/** The address of an object store; without a scheme it is reached by https. */
export const endpoint: TextFormat<Endpoint> = {
  fault: 'not an endpoint; use the form https://s3.example.com, host or host:port',
  read(text) {
    const isBare = hostName.test(text) || Boolean(parseAddress(text)?.port);
    const whole = web.read(isBare ? `https://${text}` : text);
    if (whole === undefined) return undefined;
    const { origin, pathname, search, hash } = new URL(whole);
    return search === '' && hash === '' ? { origin, basePath: pathname.replace(/\/+$/, '') } : undefined;
  },
};
