import { createServer, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Listener } from '../listen.ts';
import type { DescribedDomain, Domains } from './domains.ts';

/** What a client asks for, each with a JSON body that names the domain and a JSON body in the answer. */
export const paths = {
  describe: '/svc.api.DomainAPI/DescribeDomain',
  update: '/svc.api.DomainAPI/UpdateDomain',
  listWorkflows: '/svc.api.VisibilityAPI/ListWorkflowExecutions',
} as const;
const healthPath = '/grpc.health.v1.Health/Check';

/** `HealthCheckResponse{status: SERVING}` as one message of gRPC (grpc/grpc, doc/PROTOCOL-HTTP2.md). */
const serving = Buffer.from([0, 0, 0, 0, 2, 0x08, 1]);
const unimplemented = '12';

export interface Frontend extends Listener {
  /** A lost cluster resets every connection. */
  setLost(isLost: boolean): void;
}

export type FrontendDomains = Pick<Domains, 'describe' | 'update'>;

/** A cluster's frontend for other clusters and for clients: HTTP/2 in the clear, on loopback. */
export function openFrontend(port: number, domains: FrontendDomains): Promise<Frontend> {
  const server = createServer();
  const sessions = new Set<Http2Session>();
  let isLost = false;
  server.on('connection', (socket) => {
    if (isLost) socket.resetAndDestroy();
  });
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
      const setLost = (lost: boolean) => {
        isLost = lost;
        if (lost) for (const session of sessions) session.destroy();
      };
      resolve({ port: (server.address() as AddressInfo).port, close, setLost });
    });
  });
}

async function answer(stream: ServerHttp2Stream, path: string, domains: FrontendDomains) {
  if (Object.values<string>(paths).includes(path)) return answerClient(stream, path, domains);
  const headers = { ':status': 200, 'content-type': 'application/grpc' };
  if (path !== healthPath) {
    stream.respond({ ...headers, 'grpc-status': unimplemented }, { endStream: true });
    return;
  }
  stream.respond(headers, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(serving);
}

async function answerClient(stream: ServerHttp2Stream, path: string, domains: FrontendDomains) {
  const { name, activeCluster } = JSON.parse(await text(stream)) as { name: string; activeCluster?: string };
  const respond = (status: number, body: unknown) => {
    stream.respond({ ':status': status, 'content-type': 'application/json' });
    stream.end(JSON.stringify(body));
  };
  const domain = domains.describe(name);
  if (!domain) return respond(404, { message: `Domain ${name} does not exist.` });
  if (path === paths.describe) return respond(200, domain);
  if (path === paths.listWorkflows) return respond(200, { executions: workflowsOf(domain) });
  try {
    respond(200, domains.update(name, activeCluster ?? ''));
  } catch (thrown) {
    respond(400, { message: (thrown as Error).message });
  }
}

export interface ListedWorkflow {
  workflowId: string;
  runId: string;
  type: string;
}

/** The example keeps no workflows: the same three are listed for each domain. */
function workflowsOf({ domainInfo: { name, uuid } }: DescribedDomain): ListedWorkflow[] {
  return [1, 2, 3].map((number) => ({ workflowId: `${name}-${number}`, runId: uuid, type: 'OrderWorkflow' }));
}
