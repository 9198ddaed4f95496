/**
 * The parts of cassandra-driver that speak the protocol over one connection, without the client above them, which
 * keeps timers, reconnects and queries other nodes. They have no types.
 */
declare module 'cassandra-driver/lib/connection.js' {
  import type { EventEmitter } from 'node:events';
  import type { Socket } from 'node:net';
  import type ExecutionOptionsModule from 'cassandra-driver/lib/execution-options.js';

  class Connection extends EventEmitter {
    constructor(endpoint: string, protocolVersion: number, options: object);
    netClient: Socket;
    /** Takes the socket's bytes apart; both are there once the listeners are bound. */
    protocol: EventEmitter;
    parser: EventEmitter;
    bindSocketListeners(): void;
    /** Negotiates the protocol, and authenticates if the server requires it. */
    startup(callback: (error?: Error | null) => void): void;
    sendStream(
      request: object,
      options: ExecutionOptionsModule.ExecutionOptions,
      callback: (error: Error | null | undefined, result?: { rows?: Record<string, unknown>[] }) => void,
    ): void;
  }
  export default Connection;
}

declare module 'cassandra-driver/lib/requests.js' {
  const requests: {
    QueryRequest: new (query: string, values: null, options: object) => object;
  };
  export default requests;
}

declare module 'cassandra-driver/lib/execution-options.js' {
  namespace executionOptions {
    /** Asked for each option of one request; undefined is the default. */
    interface ExecutionOptions {
      getConsistency(): number | undefined;
      getReadTimeout(): number | undefined;
    }
  }
  const executionOptions: {
    ExecutionOptions: { empty(): executionOptions.ExecutionOptions };
  };
  export default executionOptions;
}

declare module 'cassandra-driver/lib/client-options.js' {
  const clientOptions: { extend(options: object): object };
  export default clientOptions;
}
