import type { Socket } from 'node:net';
import { ProbeError } from '../../probe-error.ts';
import { ProtocolFailure } from './fault.ts';

const headerBytes = 4;
/** A greeting has about a hundred bytes. */
const mostBytes = 4096;
const errorMarker = 0xff;
const protocolVersions = [9, 10];

/** What a server says that refuses at once, as the driver would put it. */
function refusal(packet: Buffer): Error {
  const [, sqlState = '', sqlMessage = ''] =
    /^(?:#(.{5}))?(.*)$/s.exec(packet.toString('utf8', headerBytes + 3)) ?? [];
  const errno = packet.readUInt16LE(headerBytes + 1);
  return Object.assign(new Error(sqlMessage), { errno, sqlState, sqlMessage });
}

/** Whether the packet is whole; throws when it is no greeting, or a refusal. */
function isWhole(bytes: Buffer): boolean {
  if (bytes.length <= headerBytes) return false;
  const length = bytes.readUIntLE(0, 3);
  const marker = bytes[headerBytes]!;
  const isPlausible = marker === errorMarker || (protocolVersions.includes(marker) && bytes[3] === 0);
  if (!isPlausible || length < 3 || length > mostBytes) {
    throw new ProtocolFailure('what answers there does not speak the MySQL protocol');
  }
  if (bytes.length < headerBytes + length) return false;
  if (marker === errorMarker) throw refusal(bytes.subarray(0, headerBytes + length));
  return true;
}

/**
 * Waits for the server's first packet and leaves it unread for the driver, which would take whatever comes for a
 * packet of up to 16 MiB. Rejects with the server's own error where it refuses at once, such as error 1040.
 */
export function greeting(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const settle = (done: () => void): void => {
      socket.off('readable', read).off('error', fail).off('close', closed);
      done();
    };
    const fail = (error: unknown): void => settle(() => reject(error));
    const closed = (): void => fail(new ProbeError('reset', 'closed before the server greeted'));
    const read = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read()) {
        bytes = Buffer.concat([bytes, chunk]);
      }
      try {
        if (!isWhole(bytes)) return;
        socket.unshift(bytes);
        settle(resolve);
      } catch (error) {
        fail(error);
      }
    };
    socket.on('readable', read).on('error', fail).on('close', closed);
  });
}
