import { join } from 'node:path';
import { type Role, roles } from '../../src/core/catalog.ts';
import type { Clock } from '../../src/core/ports.ts';
import { controlListener } from './control.ts';
import { type Incident, type IncidentKind, incidentKinds, type Order } from './incidents.ts';
import { type Listener, listen } from './listen.ts';
import type { ServiceOptions } from './options.ts';
import { createRandom } from './random.ts';
import { createRole, type RoleAddresses, type RunningRole } from './role.ts';
import type { StoreState } from './store/store.ts';
import { createSurroundings, type SurroundingAddresses } from './surroundings.ts';
import { createTrouble } from './trouble.ts';

/** Where everything is, once it is there. */
export interface ServiceAddresses extends SurroundingAddresses {
  directory: string;
  /** `POST` here, with `?kind=`, makes something go wrong. */
  incident: string;
  /** `POST` here ends what went wrong. */
  end: string;
  kinds: readonly IncidentKind[];
  roles: Record<Role, RoleAddresses>;
}

/** The answer to an order that ends nothing. */
export const nothingToEnd = 'no incident to end';

export interface Service {
  /** What can go wrong here. */
  readonly kinds: readonly IncidentKind[];
  /** Rejects if a port or the directory cannot be had; nothing is left open then. */
  start(): Promise<ServiceAddresses>;
  /** Returns what came of it, for people. */
  obey(order: Order): string;
  stop(): Promise<void>;
}

interface ServiceDeps {
  clock: Clock;
  /** Hears of each incident as it begins and ends. */
  announce(incident: Incident, phase: 'began' | 'ended'): void;
  /** Hears what is no longer as it should be, though nobody asked for it. */
  complain(why: string): void;
}

const tickMs = 250;

function createRoles(options: ServiceOptions, clock: Clock, storeState: () => StoreState): RunningRole[] {
  const port = (base: number, index: number) => (base === 0 ? 0 : base + index);
  return roles.map((role, index) => {
    const random = createRandom(options.seed + index + 1);
    const { directory, rotateBytes, ratePerSecond, names, healthPort, metricsPort } = options;
    const ports = { health: port(healthPort, index), metrics: port(metricsPort, index) };
    const logPath = join(directory, `${role}.log`);
    return createRole(
      { role, logPath, rotateBytes, ports, ratePerSecond, names },
      { clock, random, storeState },
    );
  });
}

/** Four roles that work, log and fail as the specification's service does; all of it is make-believe. */
export function createService(options: ServiceOptions, deps: ServiceDeps): Service {
  const { clock, announce } = deps;
  const surroundings = createSurroundings(options, deps);
  const running = createRoles(options, clock, () => surroundings.storeState);
  const named = (name: Role) => running.find(({ role }) => role === name)!;
  const kinds = incidentKinds({ hasStore: options.storePort !== undefined });
  const trouble = createTrouble(
    { everyMs: options.incidentEveryMs, kinds },
    {
      clock,
      random: createRandom(options.seed),
      announce,
      restart: (name, fatal) => named(name).restart(fatal),
      failOver: surroundings.failOver,
    },
  );
  let control: Listener | undefined;
  let cancelTick = () => {};
  let endTrouble = () => {};

  function tick() {
    for (const role of running) role.tick(trouble.conditions);
    surroundings.advance(trouble.conditions, named('worker').isUp);
    cancelTick = clock.after(tickMs, tick);
  }

  async function stop() {
    cancelTick();
    endTrouble();
    await Promise.all([control?.close(), surroundings.stop(), ...running.map((role) => role.stop())]);
  }

  function obey(order: Order): string {
    const named = ({ kind, target }: Incident) => `${kind} ${target}`;
    if ('strike' in order) {
      trouble.strike(order.strike);
      return named(order.strike);
    }
    const ended = trouble.end(order.end);
    return ended.length > 0 ? `ended: ${ended.map(named).join(', ')}` : nothingToEnd;
  }

  async function open(): Promise<ServiceAddresses> {
    control = await listen(options.controlPort, controlListener(kinds, obey));
    const addresses: Partial<Record<Role, RoleAddresses>> = {};
    for (const role of running) addresses[role.role] = await role.start();
    const around = await surroundings.start();
    tick();
    endTrouble = trouble.start();
    return {
      directory: options.directory,
      incident: `http://127.0.0.1:${control.port}/incident`,
      end: `http://127.0.0.1:${control.port}/end`,
      kinds,
      roles: addresses as Record<Role, RoleAddresses>,
      ...around,
    };
  }

  return {
    kinds,
    start: () =>
      open().catch(async (thrown) => {
        await stop();
        throw thrown;
      }),
    obey,
    stop,
  };
}
