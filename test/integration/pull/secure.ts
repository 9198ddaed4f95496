import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { Certificate } from './certificates.ts';
import type { Answer } from './scraper.ts';

/** The certificates that a TLS client trusts and presents. */
export interface Client {
  trusts: Certificate;
  shows?: Certificate;
  more?: ConnectionOptions;
}

const optionsOf = ({ trusts, shows, more }: Client): ConnectionOptions => ({
  ca: readFileSync(trusts.cert),
  ...(shows && { cert: readFileSync(shows.cert), key: readFileSync(shows.key) }),
  ...more,
});

/** Sends one HTTPS request on a separate connection; rejects if there is no complete response. */
export function getSecurely(
  address: string,
  path: string,
  client: Client,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { ...optionsOf(client), headers, agent: false as const };
    const sent = request(`https://${address}${path}`, options, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(pieces) });
      });
    });
    sent.on('error', reject).end();
  });
}

/** A TLS connection after its handshake. */
export async function connectSecurely(address: string, client: Client): Promise<TLSSocket> {
  const { hostname, port } = new URL(`https://${address}`);
  const socket = connect({ host: hostname, port: Number(port), ...optionsOf(client) });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  return socket;
}

export const basic = (username: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
});
