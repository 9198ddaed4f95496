import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { type ConnectionLimits, createConnections } from '../../../src/reporters/listen/connections.ts';

/** A listener's connections with sockets that have only addresses. */
function openConnections(limits: Partial<ConnectionLimits> = {}) {
  let dropped = 0;
  let port = 0;
  const connections = createConnections(
    { connections: 16, connectionsPerAddress: 8, reservedConnections: 4, ...limits },
    {
      count(component, reason) {
        expect([component, reason]).toEqual(['pull', 'too_many_connections']);
        dropped += 1;
      },
    },
  );
  const connect = (address: string) => {
    const events = new EventEmitter();
    const socket = Object.assign(events, {
      remoteAddress: address,
      remotePort: port++,
      destroyed: false,
      destroy() {
        socket.destroyed = true;
        events.emit('close');
      },
    });
    const isAdmitted = connections.admit(socket as unknown as Socket);
    return {
      isAdmitted,
      isOpen: () => !socket.destroyed,
      close: () => socket.destroy(),
      start: () => connections.requestStarted(socket as unknown as Socket),
      end: (isServed = true) => connections.requestEnded(socket as unknown as Socket, isServed),
    };
  };
  /** A client that is served and disconnects. */
  const serve = (address: string): void => {
    const one = connect(address);
    one.start();
    one.end();
    one.close();
  };
  const connectAll = (addresses: readonly string[]) => addresses.map(connect);
  return { connect, connectAll, serve, dropped: () => dropped };
}

const addresses = (count: number, network = '10.0.0') =>
  Array.from({ length: count }, (_, i) => `${network}.${i}`);

test('a client at its limit replaces its own oldest connection without a request, no other client’s', () => {
  const bed = openConnections();
  const other = bed.connect('10.0.0.1');
  const own = bed.connectAll(Array(8).fill('10.0.0.2'));
  own[0]!.start();
  expect(bed.connect('10.0.0.2').isAdmitted).toBe(true);
  expect(own.map(({ isOpen }) => isOpen())).toEqual([true, false, true, true, true, true, true, true]);
  expect(other.isOpen()).toBe(true);
  expect(bed.dropped()).toBe(1);
});

test.each([
  ['192.0.2.1', '::ffff:192.0.2.1', true],
  ['192.0.2.1', '192.0.2.2', false],
  ['2001:db8:0:1::1', '2001:db8:0:1:ffff:ffff:ffff:ffff', true],
  ['2001:db8::1', '2001:db8:0:0:1::', true],
  ['2001:db8::1', '2001:db8:0:1::1', false],
  ['::1', '2001:db8::1', false],
  ['fe80::1%eth0', 'fe80::2', true],
])('%s and %s are one client: %s', (one, other, areOne) => {
  const bed = openConnections({ connectionsPerAddress: 1 });
  bed.connect(one).start();
  expect(bed.connect(other).isAdmitted).toBe(!areOne);
});

test('a client with nothing but requests in progress is refused, others are not', () => {
  const bed = openConnections();
  for (const one of bed.connectAll(Array(8).fill('10.0.0.2'))) one.start();
  expect(bed.connect('10.0.0.2').isAdmitted).toBe(false);
  expect(bed.connect('10.0.0.1').isAdmitted).toBe(true);
  expect(bed.dropped()).toBe(1);
});

test('unknown clients leave room for those that were served before', () => {
  const bed = openConnections();
  bed.serve('192.0.2.1');
  const unknown = bed.connectAll(addresses(40));
  expect(unknown.every(({ isAdmitted }) => isAdmitted)).toBe(true);
  expect(unknown.filter(({ isOpen }) => isOpen())).toHaveLength(12);
  for (const one of unknown) if (one.isOpen()) one.start();
  // All connections are busy: an unknown client is refused, while a served one has 4 connections left.
  expect(bed.connect('10.0.1.1').isAdmitted).toBe(false);
  expect(bed.connectAll(Array(4).fill('192.0.2.1')).every(({ isAdmitted }) => isAdmitted)).toBe(true);
});

test('an unknown client never replaces a connection of one that was served', () => {
  const bed = openConnections();
  const scraper = bed.connect('192.0.2.1');
  scraper.start();
  scraper.end();
  bed.connectAll(addresses(100));
  expect(scraper.isOpen()).toBe(true);
});

test('a request that was not authorized does not make a client known', () => {
  const bed = openConnections();
  const guesser = bed.connect('192.0.2.1');
  guesser.start();
  guesser.end(false);
  bed.connectAll(addresses(12));
  expect(guesser.isOpen()).toBe(false);
});

test('an idle connection that is replaced is not counted', () => {
  const bed = openConnections({ connections: 1 });
  const idle = bed.connect('10.0.0.1');
  idle.start();
  idle.end();
  expect(bed.connect('10.0.0.1').isAdmitted).toBe(true);
  expect([idle.isOpen(), bed.dropped()]).toEqual([false, 0]);
});

test('10,000 connections of as many clients leave nothing behind', () => {
  const bed = openConnections();
  for (let i = 0; i < 10_000; i++) bed.serve(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
  const many = bed.connectAll(addresses(12));
  expect(many.every(({ isOpen }) => isOpen())).toBe(true);
});
