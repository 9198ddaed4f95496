import type { Socket } from 'node:net';
import type { ListenerTls, Protection, ReadSecret } from '../../core/access.ts';
import type { Clock, Drops, Log } from '../../core/ports.ts';
import { createGuard, type Guard } from './auth.ts';
import { createHandshakes, type Handshakes } from './handshakes.ts';

export interface SecurityDeps {
  clock: Clock;
  drops: Drops;
  log: Log;
  readSecret: ReadSecret;
}

/** The protection of one HTTP listener, which may change while it listens. */
export interface Security {
  /** Undefined where everybody may ask. */
  readonly guard: Guard | undefined;
  /** Leads a connection to `serve`, through a handshake if there is to be one. */
  accept(socket: Socket): void;
  /** Whether what is asked on this connection came in by the TLS settings of now. */
  isCurrent(socket: Socket): boolean;
  /** Like `Listener.protect`. */
  protect(next: Protection): () => void;
  cutHandshakes(): void;
}

/** TLS settings at work; equal texts are equal settings. */
interface Entrance {
  readonly text: string;
  readonly handshakes: Handshakes | undefined;
}

const textOf = (part: object | undefined): string => JSON.stringify(part ?? null);

export interface SecurityOptions {
  /** Place of `tls` and `auth` in the configuration. */
  place: string;
  handshakeMs: number;
}

/** Who came in by which settings, for as long as they are connected. */
function createComers(serve: (socket: Socket) => void) {
  const cameBy = new Map<Socket, Entrance>();
  return {
    admit(socket: Socket, by: Entrance): void {
      cameBy.set(socket, by);
      socket.once('close', () => cameBy.delete(socket));
      serve(socket);
    },
    came: (socket: Socket, by: Entrance): boolean => cameBy.get(socket) === by,
    closeAllBut(entrance: Entrance): void {
      for (const [socket, by] of cameBy) if (by !== entrance) socket.destroy();
    },
  };
}

function createEntrance(
  tls: ListenerTls | undefined,
  { place, handshakeMs }: SecurityOptions,
  { clock, drops, log, admit }: SecurityDeps & { admit(socket: Socket, by: Entrance): void },
): Entrance {
  const text = textOf(tls);
  if (!tls) return { text, handshakes: undefined };
  const options = { tls, handshakeMs, protocols: ['http/1.1'] };
  const handshakes = createHandshakes(options, {
    place: `${place}.tls`,
    nowMs: clock.nowMs,
    log,
    onSecure: (socket) => admit(socket, made),
    onFailure(reason) {
      drops.count('pull', 'handshake_failed');
      log.write('debug', 'handshake failed', { listener: place, reason });
    },
  });
  const made: Entrance = { text, handshakes };
  return made;
}

/** `serve` gets each connection that may speak HTTP: the accepted one, or the TLS one over it. */
export function createSecurity(
  options: SecurityOptions,
  deps: SecurityDeps & { serve(socket: Socket): void },
): Security {
  const { admit, came, closeAllBut } = createComers(deps.serve);
  let entrance = createEntrance(undefined, options, { ...deps, admit });
  let guard: Guard | undefined;
  let guardText = textOf(undefined);

  return {
    get guard() {
      return guard;
    },
    accept(socket) {
      if (entrance.handshakes) entrance.handshakes.begin(socket);
      else admit(socket, entrance);
    },
    isCurrent: (socket) => came(socket, entrance),
    protect({ tls, auth }) {
      const isSame = textOf(tls) === entrance.text;
      const nextEntrance = isSame ? entrance : createEntrance(tls, options, { ...deps, admit });
      const nextText = textOf(auth);
      const nextGuard = nextText === guardText ? guard : auth && createGuard(auth, deps);
      return () => {
        guard = nextGuard;
        guardText = nextText;
        if (nextEntrance === entrance) return;
        entrance.handshakes?.cut();
        entrance = nextEntrance;
        closeAllBut(entrance);
      };
    },
    cutHandshakes: () => entrance.handshakes?.cut(),
  };
}
