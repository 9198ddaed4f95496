import { beginningOf, ProbeError } from '../probe.ts';

/** The types of a server's first message: authentication, error, notice, another version of the protocol. */
const greetings = 'RENv';
const longestGreeting = 65_536;
/** The size limit of all answers of one poll together. The answers to the agent's own questions take a thousandth of it. */
const longestAnswers = 8 * 1024 * 1024;
const headerBytes = 5;

const notPostgres = (what: string) =>
  new ProbeError('protocol', `the server does not speak PostgreSQL’s protocol: ${what}`);

interface ProtocolGuard {
  /** Inspects received bytes. Throws `ProbeError` (`protocol`). */
  inspect(chunk: Buffer): void;
  /** Resets the number of bytes of answers. */
  reset(): void;
}

/**
 * Checks what a server sends before the driver sees it. The driver trusts every byte: it would read bytes of another protocol as
 * a length and wait for gigabytes, and read an error without an end for ever
 * (postgresql.org/docs/current/protocol-message-formats.html).
 */
export function createProtocolGuard(): ProtocolGuard {
  let received = 0;
  let isFirst = true;
  let header: Buffer = Buffer.alloc(0);
  /** The number of bytes of the message that are still missing. */
  let missing = 0;
  /** The received part of an error or a notice. */
  let body: Buffer[] | undefined;

  const takeBody = (part: Buffer) => {
    missing -= part.length;
    body?.push(part);
    if (missing > 0 || body === undefined) return;
    if (!isListOfFields(Buffer.concat(body))) throw notPostgres('an error without an end');
    body = undefined;
  };
  const beginMessage = (head: Buffer) => {
    const letter = String.fromCharCode(head[0]!);
    const length = head.readUInt32BE(1);
    if (isFirst && !(greetings.includes(letter) && length <= longestGreeting))
      throw notPostgres('its first answer belongs to another protocol');
    if (length < 4) throw notPostgres('a length that is too small');
    isFirst = false;
    missing = length - 4;
    body = letter === 'E' || letter === 'N' ? [] : undefined;
    if (missing === 0) takeBody(head.subarray(headerBytes));
  };
  return {
    inspect(chunk) {
      received += chunk.length;
      if (received > longestAnswers)
        throw new ProbeError('protocol', `more than ${longestAnswers} bytes of answers`);
      if (isFirst && !greetings.includes(String.fromCharCode(chunk[0]!)) && header.length === 0)
        throw notPostgres(beginningOf(chunk));
      for (let at = 0; at < chunk.length; ) {
        const part = chunk.subarray(at, at + (missing || headerBytes - header.length));
        at += part.length;
        if (missing > 0) takeBody(part);
        else header = Buffer.concat([header, part]);
        if (header.length < headerBytes) continue;
        const head = header;
        header = Buffer.alloc(0);
        beginMessage(head);
      }
    },
    reset() {
      received = 0;
    },
  };
}

/** Whether a body is a list of fields: letters, each with a text that ends with a zero; then a zero. */
function isListOfFields(body: Buffer): boolean {
  let at = 0;
  while (at < body.length && body[at] !== 0) {
    const end = body.indexOf(0, at + 1);
    if (end < 0) return false;
    at = end + 1;
  }
  return at === body.length - 1;
}
