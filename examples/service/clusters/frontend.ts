import { createServer, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Listener } from '../listen.ts';
import type { Domains } from './domains.ts';

/** Where a client asks for a domain: the name in a JSON body, a `DescribedDomain` in the answer's. */
export const describePath = '/svc.api.DomainAPI/DescribeDomain';
const healthPath = '/grpc.health.v1.Health/Check';

/** `HealthCheckResponse{status: SERVING}` as one message of gRPC (grpc/grpc, doc/PROTOCOL-HTTP2.md). */
const serving = Buffer.from([0, 0, 0, 0, 2, 0x08, 1]);
const unimplemented = '12';

/** A cluster's frontend for other clusters and for clients: HTTP/2 in the clear, on loopback. */
export function openFrontend(port: number, domains: Pick<Domains, 'describe'>): Promise<Listener> {
  const server = createServer();
  const sessions = new Set<Http2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    // A client that is gone is none of our business.
    session.on('error', () => {});
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    void answer(stream, headers[':path'] ?? '', domains).catch(() => stream.close());
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      const close = () =>
        new Promise<void>((closed) => {
          server.close(() => closed());
          for (const session of sessions) session.destroy();
        });
      resolve({ port: (server.address() as AddressInfo).port, close });
    });
  });
}

async function answer(stream: ServerHttp2Stream, path: string, domains: Pick<Domains, 'describe'>) {
  if (path === describePath) return describe(stream, domains);
  const headers = { ':status': 200, 'content-type': 'application/grpc' };
  if (path !== healthPath) {
    stream.respond({ ...headers, 'grpc-status': unimplemented }, { endStream: true });
    return;
  }
  stream.respond(headers, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(serving);
}

async function describe(stream: ServerHttp2Stream, { describe: describeDomain }: Pick<Domains, 'describe'>) {
  const { name } = JSON.parse(await text(stream)) as { name: string };
  const domain = describeDomain(name);
  stream.respond({ ':status': domain ? 200 : 404, 'content-type': 'application/json' });
  stream.end(JSON.stringify(domain ?? { message: `Domain ${name} does not exist.` }));
}
