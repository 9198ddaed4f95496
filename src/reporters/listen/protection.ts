import type { Socket } from 'node:net';
import type { ListenerTls, Protection as ProtectionSettings, ReadSecret } from '../../core/access.ts';
import type { Clock, Drops, Log } from '../../core/ports.ts';
import { type Authenticator, createAuthenticator } from './auth.ts';
import { createHandshakes, type Handshakes } from './handshakes.ts';

export interface ProtectionDeps {
  clock: Clock;
  drops: Drops;
  log: Log;
  readSecret: ReadSecret;
}

/** TLS and authentication of an HTTP listener. Both can change while it listens. */
export interface Protection {
  /** Undefined without authentication. */
  readonly auth: Authenticator | undefined;
  /** Passes a connection to `serve`, after a TLS handshake if TLS is on. */
  accept(socket: Socket): void;
  /** Whether the connection was accepted with the current TLS settings. */
  isCurrent(socket: Socket): boolean;
  /** See `Listener.protect`. */
  protect(next: ProtectionSettings): () => void;
  /** Closes connections in a handshake. */
  cutHandshakes(): void;
}

/** TLS settings in use; equal keys are equal settings. */
interface TlsState {
  readonly key: string;
  readonly handshakes: Handshakes | undefined;
}

const keyOf = (settings: object | undefined): string => JSON.stringify(settings ?? null);

export interface ProtectionOptions {
  /** Path of `tls` and `auth` in the configuration. */
  place: string;
  handshakeMs: number;
}

/** Open connections and the TLS settings that they were accepted with. */
function createAccepted(serve: (socket: Socket) => void) {
  const accepted = new Map<Socket, TlsState>();
  return {
    accept(socket: Socket, state: TlsState): void {
      accepted.set(socket, state);
      socket.once('close', () => accepted.delete(socket));
      serve(socket);
    },
    has: (socket: Socket, state: TlsState): boolean => accepted.get(socket) === state,
    closeOthers(current: TlsState): void {
      for (const [socket, state] of accepted) if (state !== current) socket.destroy();
    },
  };
}

function createTlsState(
  tls: ListenerTls | undefined,
  { place, handshakeMs }: ProtectionOptions,
  { clock, drops, log, accept }: ProtectionDeps & { accept(socket: Socket, state: TlsState): void },
): TlsState {
  const key = keyOf(tls);
  if (!tls) return { key, handshakes: undefined };
  const options = { tls, handshakeMs, protocols: ['http/1.1'] };
  const handshakes = createHandshakes(options, {
    place: `${place}.tls`,
    nowMs: clock.nowMs,
    log,
    onSecure: (socket) => accept(socket, state),
    onFailure(reason) {
      drops.count('pull', 'handshake_failed');
      log.write('debug', 'TLS handshake failed', { listener: place, reason });
    },
  });
  const state: TlsState = { key, handshakes };
  return state;
}

/** `serve` gets each connection that may speak HTTP: the accepted socket, or the TLS socket over it. */
export function createProtection(
  options: ProtectionOptions,
  deps: ProtectionDeps & { serve(socket: Socket): void },
): Protection {
  const { accept, has, closeOthers } = createAccepted(deps.serve);
  let state = createTlsState(undefined, options, { ...deps, accept });
  let auth: Authenticator | undefined;
  let authKey = keyOf(undefined);

  return {
    get auth() {
      return auth;
    },
    accept(socket) {
      if (state.handshakes) state.handshakes.begin(socket);
      else accept(socket, state);
    },
    isCurrent: (socket) => has(socket, state),
    protect({ tls, auth: settings }) {
      const isSame = keyOf(tls) === state.key;
      const nextState = isSame ? state : createTlsState(tls, options, { ...deps, accept });
      const nextKey = keyOf(settings);
      const nextAuth = nextKey === authKey ? auth : settings && createAuthenticator(settings, deps);
      return () => {
        auth = nextAuth;
        authKey = nextKey;
        if (nextState === state) return;
        state.handshakes?.cut();
        state = nextState;
        closeOthers(state);
      };
    },
    cutHandshakes: () => state.handshakes?.cut(),
  };
}
