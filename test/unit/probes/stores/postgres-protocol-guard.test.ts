import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createProtocolGuard } from '../../../../src/probes/stores/postgres-protocol-guard.ts';

function message(letter: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(letter, 'latin1');
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
const text = fc.string({ unit: 'grapheme', maxLength: 20 }).map((one) => one.replaceAll('\0', ''));
const field = fc
  .tuple(fc.constantFrom('S', 'C', 'M', 'D'), text)
  .map(([letter, value]) => `${letter}${value}\0`);
const fields = fc.array(field).map((list) => Buffer.from(`${list.join('')}\0`));
const spoken = fc.oneof(
  fc.tuple(fc.constantFrom('R', 'Z', 'D', 'T', 'C', 'S'), fc.uint8Array({ maxLength: 40 })),
  fc.tuple(fc.constantFrom('E', 'N'), fields),
);
const conversation = fc
  .tuple(fc.uint8Array({ maxLength: 20 }), fc.array(spoken))
  .map(([greeting, messages]) => [
    message('R', Buffer.from(greeting)),
    ...messages.map(([letter, body]) => message(letter, Buffer.from(body))),
  ]);

/** Whether all bytes pass if they are cut at these places. */
function passes(bytes: Buffer, cuts: readonly number[]): boolean {
  const guard = createProtocolGuard();
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  try {
    for (let index = 1; index < places.length; index++) {
      const chunk = bytes.subarray(places[index - 1], places[index]);
      if (chunk.length > 0) guard.inspect(chunk);
    }
    return true;
  } catch {
    return false;
  }
}

test('what PostgreSQL says passes, however it is cut', () => {
  fc.assert(
    fc.property(conversation, fc.array(fc.nat()), (messages, cuts) => {
      expect(passes(Buffer.concat(messages), cuts)).toBe(true);
    }),
  );
});

test('an error without its end never passes, however it is cut', () => {
  fc.assert(
    fc.property(conversation, field, fc.array(fc.nat()), (messages, last, cuts) => {
      const broken = [message('E', Buffer.from(last)), message('N', Buffer.from(`${last}\0more`))];
      for (const bad of broken) expect(passes(Buffer.concat([...messages, bad]), cuts)).toBe(false);
    }),
  );
});

test('any bytes: an answer, however they are cut the same', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), fc.array(fc.nat()), (bytes, cuts) => {
      expect(passes(Buffer.from(bytes), cuts)).toBe(passes(Buffer.from(bytes), []));
    }),
  );
});
