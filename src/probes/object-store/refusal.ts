import type { ArchiveFailureReason } from '../../core/reasons.ts';
import { excerpt, ProbeError } from '../probe-error.ts';
import type { Answer } from './connection.ts';
import { readDocument } from './listing.ts';
import { childText, type XmlElement } from './xml.ts';

/** What the codes of refusals mean (S3 API reference, List of error codes); others go by the status. */
const codes: Readonly<Record<string, ArchiveFailureReason>> = {
  NoSuchBucket: 'not_found',
  AccessDenied: 'denied',
  AllAccessDisabled: 'denied',
  AccountProblem: 'denied',
  SignatureDoesNotMatch: 'denied',
  InvalidAccessKeyId: 'credentials',
  InvalidToken: 'credentials',
  ExpiredToken: 'credentials',
  TokenRefreshRequired: 'credentials',
  RequestTimeTooSkewed: 'clock_skew',
};

const advice: Readonly<Record<string, string>> = {
  SignatureDoesNotMatch: 'the secret key does not belong to the access key, or the region is another one',
  RequestTimeTooSkewed: 'the clock of this machine or of the store is wrong',
};

/** An answer other than 200, as a failure; what the store says for people is taken, cut short. */
export function refusalOf({ status, header, body }: Answer): ProbeError {
  const error = errorOf(body);
  const code = (error && childText(error, 'Code')?.trim()) ?? '';
  const reason = Object.hasOwn(codes, code) ? codes[code]! : reasonOfStatus(status);
  const said = [`status ${status}`, code, error && childText(error, 'Message')].filter(Boolean).join(', ');
  const region = header('x-amz-bucket-region') ?? (error && childText(error, 'Region'));
  const elsewhere = region ? `the bucket is in region ${excerpt(region)}` : undefined;
  const location = status >= 300 && status < 400 ? header('location') : undefined;
  const hint = advice[code] ?? elsewhere ?? (location && `it redirects to ${excerpt(location)}`);
  return new ProbeError(reason, `the object store refuses: ${excerpt(said)}${hint ? `; ${hint}` : ''}`);
}

function reasonOfStatus(status: number): ArchiveFailureReason {
  if (status === 401) return 'credentials';
  return status === 403 ? 'denied' : 'http_status';
}

function errorOf(body: Uint8Array): XmlElement | undefined {
  try {
    const root = readDocument(body);
    return root.name === 'Error' ? root : root.children.find(({ name }) => name === 'Error');
  } catch {
    return undefined;
  }
}
