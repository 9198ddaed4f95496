import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import type { Conditions } from '../incidents.ts';
import { freePort } from '../listen.ts';
import { type DatabaseRole, databaseRoles, databases } from '../world.ts';
import { setUp } from './schema.ts';

/** `starting` until it was up for the first time; without a store it is always `up`. */
export type StoreState = 'starting' | 'up' | 'down';

/** A database that speaks PostgreSQL's protocol on loopback, in a thread of its own. */
interface Store {
  readonly state: StoreState;
  /** Begins; resolves with the port at once, long before anybody answers there. */
  start(): Promise<number>;
  /** Does what the conditions ask for, as far as it can at the moment. */
  follow(conditions: Conditions): void;
  stop(): Promise<void>;
}

interface StoreDeps {
  /** Hears why it is no more, once. */
  complain(why: string): void;
}

/** Whether there can be one: PGlite is no part of the package. */
export function hasStore(): boolean {
  try {
    return createRequire(import.meta.url).resolve('@electric-sql/pglite') !== '';
  } catch {
    return false;
  }
}

/** Beside the bundle, or as it stands in the source. */
const thread = () =>
  ['./example-store.js', './thread.mjs']
    .map((name) => new URL(name, import.meta.url))
    .find((url) => existsSync(url))!;

type Order = 'open' | 'close';

/** 0 takes any free port, and keeps it from then on. */
export function createStore(wantedPort: number, { complain }: StoreDeps): Store {
  let state: StoreState = 'starting';
  let worker: Worker | undefined;
  let port = wantedPort;
  /** An order or a statement is under way. */
  let isBusy = true;
  const versions = databaseRoles.map((role) => ({ role, now: databases[role].version }));

  function order(what: Order) {
    isBusy = true;
    worker?.postMessage(what);
  }

  function hear(what: Order | 'ready') {
    isBusy = false;
    if (what === 'ready') order('open');
    else if (what === 'open') state = 'up';
  }

  function fail(error: Error) {
    worker = undefined;
    state = 'down';
    complain(`the store is gone: ${error.message}`);
  }

  /** A version that cannot be set is tried again when the conditions are followed again. */
  async function keepVersions({ outdatedDatabase }: Conditions) {
    const wantedOf = (role: DatabaseRole) =>
      outdatedDatabase === role ? databases[role].before : databases[role].version;
    const wrong = versions.find(({ role, now }) => now !== wantedOf(role));
    if (!wrong) return;
    isBusy = true;
    const wanted = wantedOf(wrong.role);
    const setting = import('./schema-tool.ts').then(({ setVersion }) => setVersion(port, wrong.role, wanted));
    await setting.then(
      () => {
        wrong.now = wanted;
      },
      () => {},
    );
    isBusy = false;
  }

  return {
    get state() {
      return state;
    },
    async start() {
      port = await freePort(wantedPort);
      worker = new Worker(thread(), { workerData: { port, setUp } });
      worker.on('message', hear);
      worker.once('error', fail);
      return port;
    },
    follow(conditions) {
      if (!worker || isBusy) return;
      const isRefusing = conditions.refusingStore !== undefined;
      if (isRefusing && state === 'up') {
        state = 'down';
        order('close');
      } else if (!isRefusing && state === 'down') order('open');
      else if (state === 'up') void keepVersions(conditions);
    },
    async stop() {
      const ending = worker;
      worker = undefined;
      await ending?.terminate();
    },
  };
}
