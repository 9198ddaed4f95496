import { ProtocolFailure } from './fault.ts';

/** What a server's first message can be: authentication, error, notice, another version of the protocol. */
const greetings = 'RENv';
const longestGreeting = 65_536;
/** Of all answers together; those to our own questions are a thousandth of it. */
const longestAnswers = 8 * 1024 * 1024;
const headerBytes = 5;

const notPostgres = (what: string) =>
  new ProtocolFailure(`what answers there does not speak PostgreSQL’s protocol: ${what}`);

/**
 * Looks over what a server sends before the driver does, which believes every byte: it would take those of another
 * protocol for a length and wait for gigabytes, and read an error without an end for ever. Throws ProtocolFailure
 * (postgresql.org/docs/current/protocol-message-formats.html).
 */
export function createScrutiny(): (chunk: Buffer) => void {
  let received = 0;
  let isFirst = true;
  let header: Buffer = Buffer.alloc(0);
  /** Bytes of the message that are still to come. */
  let missing = 0;
  /** Of an error or a notice what has come. */
  let body: Buffer[] | undefined;

  const take = (part: Buffer) => {
    missing -= part.length;
    body?.push(part);
    if (missing > 0 || body === undefined) return;
    if (!isListOfFields(Buffer.concat(body))) throw notPostgres('an error without an end');
    body = undefined;
  };
  const begin = (head: Buffer) => {
    const letter = String.fromCharCode(head[0]!);
    const length = head.readUInt32BE(1);
    if (isFirst && !(greetings.includes(letter) && length <= longestGreeting))
      throw notPostgres('its greeting');
    if (length < 4) throw notPostgres('a length that is too small');
    isFirst = false;
    missing = length - 4;
    body = letter === 'E' || letter === 'N' ? [] : undefined;
    if (missing === 0) take(head.subarray(headerBytes));
  };

  return (chunk) => {
    received += chunk.length;
    if (received > longestAnswers) throw new ProtocolFailure(`more than ${longestAnswers} bytes of answers`);
    if (isFirst && !greetings.includes(String.fromCharCode(chunk[0]!)) && header.length === 0)
      throw notPostgres('its greeting');
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + (missing || headerBytes - header.length));
      at += part.length;
      if (missing > 0) take(part);
      else header = Buffer.concat([header, part]);
      if (header.length < headerBytes) continue;
      const head = header;
      header = Buffer.alloc(0);
      begin(head);
    }
  };
}

/** Letters, each with a text that ends with a zero; then a zero. */
function isListOfFields(body: Buffer): boolean {
  let at = 0;
  while (at < body.length && body[at] !== 0) {
    const end = body.indexOf(0, at + 1);
    if (end < 0) return false;
    at = end + 1;
  }
  return at === body.length - 1;
}
