import { fieldsOf } from '../../../core/protobuf-fields.ts';
import { ProbeError } from '../../probe-error.ts';

/** Messages of gRPC over HTTP/2, as far as a health check has them (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md). */

const headBytes = 5;
const lengthType = 2;

/** A message with its head: not compressed, and its length. */
export function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The one message of an answer. Throws `ProbeError` for anything else. */
export function unframed(body: Buffer): Buffer {
  const fault = (what: string) => new ProbeError('invalid_answer', `the gRPC answer ${what}`);
  if (body.length < headBytes) throw fault('holds no message');
  if (body[0] !== 0) throw fault('is compressed, which nobody asked for');
  if (body.readUInt32BE(1) !== body.length - headBytes) throw fault('is not one whole message');
  return body.subarray(headBytes);
}

/** A message of one text, as field 1; empty for an empty text. */
export function textMessage(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length === 0) return bytes;
  const head = [1 * 8 + lengthType];
  let rest = bytes.length;
  for (; rest > 127; rest >>>= 7) head.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...head, rest]), bytes]);
}

/** The number in field 1 and the text in field 2; 0 and '' where they are missing. Throws `ProbeError`. */
export function numberAndText(message: Buffer): { number: number; text: string } {
  let number = 0;
  let text = '';
  try {
    for (const { field, value, bytes } of fieldsOf(message)) {
      if (field === 1) number = value;
      if (field === 2) text = bytes.toString();
    }
  } catch (error) {
    throw new ProbeError('invalid_answer', 'the gRPC answer is no protobuf message', error);
  }
  return { number, text };
}

/** The text of `grpc-message`, which is percent-encoded; what is not stays as it is. */
export function messageOf(header: string): string {
  try {
    return decodeURIComponent(header);
  } catch {
    return header;
  }
}

/** A time as `grpc-timeout` has it: at most eight digits and a unit. */
export function grpcTimeout(timeoutMs: number): string {
  return timeoutMs < 1e8 ? `${Math.ceil(timeoutMs)}m` : `${Math.ceil(timeoutMs / 1000)}S`;
}
