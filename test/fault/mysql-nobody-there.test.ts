import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import { describe, expect, test } from 'vitest';
import type { ClientTls } from '../../src/core/access.ts';
import { mysql } from '../../src/probes/stores/mysql-poll.ts';
import { makeCertificates } from '../integration/pull/certificates.ts';
import { targetOf } from '../mariadb.ts';
import { pollOnce } from '../poll-store.ts';
import { freePort } from '../ports.ts';
import { servingBare, servingOn } from '../serving.ts';

/** The connections that are open. */
const sockets = new Set<Socket>();

const keep = (socket: Socket) => sockets.add(socket.once('close', () => sockets.delete(socket)));
const serve = (answer: (socket: Socket) => unknown): Promise<number> =>
  servingBare((socket) => {
    keep(socket);
    answer(socket);
  });

const saying = (...chunks: Buffer[]) =>
  serve((socket) => {
    for (const chunk of chunks) socket.write(chunk);
  });

async function faultAt(port: number, signal = new AbortController().signal, tls?: ClientTls) {
  const thrown = await pollOnce(mysql, targetOf({ port }, { tls }), signal).then(
    () => expect.fail('the check succeeded'),
    (error: unknown) => error,
  );
  const fault = mysql.faultOf(thrown);
  expect(fault.msg).not.toContain('swordfish');
  return fault;
}

/** Starts a check, and lets its time run out once a client is connected and `isSo` is true. */
async function outOfTime(port: number, isSo: () => boolean, tls?: ClientTls) {
  const controller = new AbortController();
  const pending = faultAt(port, controller.signal, tls);
  while (sockets.size === 0 || !isSo()) await new Promise((resolve) => setImmediate(resolve));
  controller.abort(new Error('no result in time'));
  const fault = await pending;
  while (sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
  return fault;
}

/** A packet of the protocol: its length, its number, its bytes. */
function packet(number: number, ...parts: (Buffer | string | number[])[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  const header = Buffer.alloc(4);
  header.writeUIntLE(body.length, 0, 3);
  header[3] = number;
  return Buffer.concat([header, body]);
}

/** The greeting of a MySQL 8.0 (dev.mysql.com/doc/dev/mysql-server, Protocol::HandshakeV10). */
const greeting = packet(
  0,
  [10],
  '8.0.36\0',
  [7, 0, 0, 0],
  'saltsalt\0',
  [0xff, 0xf7, 33, 2, 0, 0xff, 0xdf, 21],
  Buffer.alloc(10),
  'saltsaltsalt\0',
  'caching_sha2_password\0',
);

/** The same greeting with TLS among its capabilities. */
const secureGreeting = Buffer.from(greeting);
secureGreeting[greeting.indexOf(Buffer.from([0xff, 0xf7])) + 1] = 0xff;

const error = (number: number, errno: number, text: string) =>
  packet(number, [0xff, errno & 255, errno >> 8], text);

describe('a store of kind mysql that is not there', () => {
  test('refuses the connection', async () => {
    expect((await faultAt(await freePort())).reason).toBe('refused');
  });

  test('accepts and is silent', async () => {
    const { reason, msg } = await outOfTime(await saying(), () => true);
    expect(reason).toBe('too_slow');
    expect(msg).toContain('no greeting came');
  });

  test('is a web server, which waits for us to speak', async () => {
    const { reason } = await outOfTime(await servingOn(createServer().on('connection', keep)), () => true);
    expect(reason).toBe('too_slow');
  });

  test('greets and then says nothing', async () => {
    let answered = 0;
    const port = await serve((socket) => {
      socket.write(greeting);
      socket.on('data', ({ length }) => {
        answered += length;
      });
    });
    const { reason, msg } = await outOfTime(port, () => answered > 0);
    expect(reason).toBe('too_slow');
    expect(msg).toContain('the login was not answered');
  });

  test('greets and then leaves the TLS handshake unanswered', async () => {
    let answered = 0;
    const port = await serve((socket) => {
      socket.write(secureGreeting);
      socket.on('data', ({ length }) => {
        answered += length;
      });
    });
    // The request for TLS has 36 bytes; the handshake's first message follows it.
    const { reason, msg } = await outOfTime(port, () => answered > 36, {});
    expect(reason).toBe('tls');
    expect(msg).toContain('the TLS handshake was not finished in time');
  });

  test('is ended at once by a signal that has already aborted', async () => {
    expect((await faultAt(await saying(), AbortSignal.abort())).reason).toMatch(/timeout|too_slow|resolve/);
  });
});

describe('what answers is no MySQL', () => {
  test.each([
    ['a web server that speaks first', [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')]],
    ['an SSH server', [Buffer.from('SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n')]],
    ['a mail server', [Buffer.from('220 mail.example ESMTP\r\n')]],
    ['nothing but zeros', [Buffer.alloc(64)]],
    ['an old protocol', [packet(0, [8], '3.20\0')]],
    ['a greeting with a wrong number', [packet(3, greeting.subarray(4))]],
    ['a greeting of megabytes', [Buffer.from([0, 0, 0x40, 0, 10]), Buffer.alloc(4096)]],
    ['an empty packet and one byte', [Buffer.from([0, 0, 0, 0, 10])]],
    ['a greeting without an end', [packet(0, [10], '8.0.36', Buffer.alloc(3, 1))]],
    ['a greeting and then noise', [greeting, packet(2, [0x33], 'noise')]],
    // 0xfe asks for another way to log in.
    ['a greeting and then a plugin of nobody', [greeting, packet(2, [0xfe])]],
  ])('%s', async (_, chunks) => {
    const { reason } = await faultAt(await saying(...chunks));
    expect(reason).toMatch(/^(?:protocol|credentials)$/);
  });

  test('a greeting in single bytes is whole in the end', async () => {
    const bytes = [...error(0, 1040, 'Too many connections')].map((byte) => Buffer.from([byte]));
    const port = await serve(async (socket) => {
      socket.setNoDelay();
      for (const byte of bytes) await new Promise((resolve) => socket.write(byte, resolve));
    });
    expect(await faultAt(port)).toEqual({
      reason: 'too_many_connections',
      msg: 'Too many connections (1040)',
    });
  });

  test.each([
    ['before it greeted', undefined],
    ['in its greeting', greeting.subarray(0, 20)],
  ])('closes %s', async (_, chunk) => {
    const port = await serve((socket) => void (chunk ? socket.end(chunk) : socket.end()));
    expect((await faultAt(port)).reason).toBe('reset');
  });

  test('closes after its greeting', async () => {
    const port = await serve((socket) => void socket.end(greeting));
    expect((await faultAt(port)).reason).toBe('reset');
  });

  test.each([
    [1040, '#08004Too many connections', 'too_many_connections'],
    [1129, "Host '10.0.0.9' is blocked because of many connection errors", 'denied'],
    [1130, "Host '10.0.0.9' is not allowed to connect to this MySQL server", 'denied'],
  ])('refuses at once with error %s', async (errno, text, expected) => {
    const { reason, msg } = await faultAt(await saying(error(0, errno, text)));
    expect(reason).toBe(expected);
    expect(msg).toContain(`${text.replace(/^#.{5}/, '')} (${errno})`);
  });

  test.each([
    [1045, "#28000Access denied for user 'full'@'127.0.0.1' (using password: YES)", 'credentials'],
    [3118, '#HY000Access denied for user. Account is locked.', 'credentials'],
    [3159, '#HY000Connections using insecure transport are prohibited', 'tls'],
    [1053, '#08S01Server shutdown in progress', 'shutting_down'],
  ])('refuses the login with error %s', async (errno, text, expected) => {
    const port = await saying(greeting, error(2, errno, text));
    expect((await faultAt(port)).reason).toBe(expected);
  });

  test('a way to log in that the driver does not have is named', async () => {
    const ask = packet(2, [0xfe], 'client_ed25519\0', 'salt');
    expect(await faultAt(await saying(greeting, ask))).toEqual({
      reason: 'credentials',
      msg: expect.stringContaining('by client_ed25519, which the agent does not support'),
    });
  });

  test('a server with the certificate of somebody else is told neither user nor password', async () => {
    const certificates = makeCertificates();
    const { cert, key } = certificates.authority('stranger');
    const secureContext = createSecureContext({ cert: readFileSync(cert), key: readFileSync(key) });
    const heard: Buffer[] = [];
    const port = await serve((socket) => {
      socket.write(secureGreeting);
      // The request for TLS has 36 bytes; the handshake may come with it.
      const begin = () => {
        if (socket.read(36) === null) return;
        socket.off('readable', begin);
        const secure = new TLSSocket(socket, { isServer: true, secureContext });
        secure.on('error', () => {}).on('data', (bytes) => heard.push(bytes));
      };
      socket.on('readable', begin);
    });
    expect((await faultAt(port, undefined, {})).reason).toBe('tls_untrusted');
    while (sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(heard).toEqual([]);
    // The same server learns the user once the agent has accepted its certificate.
    const controller = new AbortController();
    const trusting = faultAt(port, controller.signal, { insecure: true });
    while (heard.length === 0) await new Promise((resolve) => setImmediate(resolve));
    controller.abort(new Error('no result in time'));
    expect((await trusting).reason).toBe('too_slow');
    expect(Buffer.concat(heard).toString('latin1')).toContain('full');
  });

  test('a server that wants the password as it stands does not get it', async () => {
    let heard = '';
    const port = await serve((socket) => {
      socket.on('data', (bytes) => {
        heard += bytes.toString('latin1');
      });
      socket.write(greeting);
      socket.write(packet(2, [0xfe], 'mysql_clear_password\0', 'salt'));
    });
    expect((await faultAt(port)).reason).toBe('credentials');
    expect(heard).not.toContain('swordfish');
  });
});
