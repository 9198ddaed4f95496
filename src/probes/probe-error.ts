import { errorText, type NetworkFault, networkFault, systemCode } from '../core/errors.ts';
import type {
  ArchiveFailureReason,
  HealthFailureReason,
  ProbeFailureReason,
  StoreFailureReason,
} from '../core/reasons.ts';

/** Reasons for a failed connection, whatever protocol runs over it. */
export type ConnectionReason = HealthFailureReason & StoreFailureReason & ArchiveFailureReason;

/** A failed check: the reason, and a sentence for people that holds no secret. */
export class ProbeError<Reason extends ProbeFailureReason = ProbeFailureReason> extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ProbeError';
    this.reason = reason;
  }
}

/** The reason and the message for whatever was thrown while connecting, reading or writing. */
export function connectionFault(thrown: unknown): { reason: ConnectionReason; msg: string } {
  const msg = errorText(thrown) || (systemCode(thrown) ?? 'failed without a message');
  if (thrown instanceof ProbeError) return { reason: thrown.reason, msg };
  const fault: NetworkFault | undefined = networkFault(thrown);
  return { reason: fault ?? 'failed', msg };
}

/**
 * Text from another program for a message: one line of at most `most` characters, without control characters,
 * lone surrogates and characters that change the direction of text.
 */
export function excerpt(text: string, most = 200): string {
  // Characters that are removed cost nothing in the result, but a text of megabytes is not scanned as a whole.
  const characters = [
    ...text
      .slice(0, 20 * most)
      .replace(/[\p{Cc}\p{Cs}\p{Bidi_Control}\s]+/gu, ' ')
      .trim(),
  ];
  return characters.length > most ? `${characters.slice(0, most).join('')}…` : characters.join('');
}
