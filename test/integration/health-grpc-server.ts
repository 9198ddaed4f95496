import { readFileSync } from 'node:fs';
import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import type { Certificate } from './pull/certificates.ts';

const { root } = protobuf.parse(`
  syntax = "proto3";
  message HealthCheckRequest { string service = 1; }
  message HealthCheckResponse { int32 status = 1; }
  message HealthRequest { }
  message HealthResponse { bool ok = 1; string message = 2; }
`);

type Handler = grpc.handleUnaryCall<Record<string, unknown>, object>;

function method(path: string, request: string, response: string): grpc.MethodDefinition<object, object> {
  const [asked, answered] = [root.lookupType(request), root.lookupType(response)];
  const bytes = (type: protobuf.Type) => (value: object) => Buffer.from(type.encode(value).finish());
  const value = (type: protobuf.Type) => (raw: Buffer) => type.toObject(type.decode(raw), { defaults: true });
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: bytes(asked),
    requestDeserialize: value(asked),
    responseSerialize: bytes(answered),
    responseDeserialize: value(answered),
  };
}

export interface GrpcServer {
  readonly port: number;
  /** Ends every call and connection. */
  close(): void;
}

export interface Served {
  /** The handler of `grpc.health.v1.Health/Check`, unless left out. */
  check?: Handler;
  /** Handlers of `Health` by the name of their service. */
  own?: Record<string, Handler>;
  certificate?: Certificate;
}

/** A gRPC server with an independent implementation and an independent encoder of messages. */
export async function grpcServer({ check, own = {}, certificate }: Served): Promise<GrpcServer> {
  const server = new grpc.Server();
  if (check !== undefined) {
    const Check = method('/grpc.health.v1.Health/Check', 'HealthCheckRequest', 'HealthCheckResponse');
    server.addService({ Check }, { Check: check as grpc.UntypedHandleCall });
  }
  for (const [service, handler] of Object.entries(own)) {
    const Health = method(`/${service}/Health`, 'HealthRequest', 'HealthResponse');
    server.addService({ Health }, { Health: handler as grpc.UntypedHandleCall });
  }
  const secure = certificate && {
    cert_chain: readFileSync(certificate.cert),
    private_key: readFileSync(certificate.key),
  };
  const credentials = secure
    ? grpc.ServerCredentials.createSsl(null, [secure])
    : grpc.ServerCredentials.createInsecure();
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  return { port, close: () => server.forceShutdown() };
}
