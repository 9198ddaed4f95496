import { join } from 'node:path';
import { type Role, roles } from '../../src/core/catalog.ts';
import type { Clock } from '../../src/core/ports.ts';
import { controlListener } from './control.ts';
import { type Incident, type IncidentKind, incidentKinds } from './incidents.ts';
import { type Listener, listen } from './listen.ts';
import type { ServiceOptions } from './options.ts';
import { createRandom } from './random.ts';
import { createRole, type RoleAddresses, type RunningRole } from './role.ts';
import { createTrouble } from './trouble.ts';

/** Where everything is, once it is there. */
export interface ServiceAddresses {
  directory: string;
  /** `POST` here, with `?kind=`, makes something go wrong. */
  incident: string;
  kinds: readonly IncidentKind[];
  roles: Record<Role, RoleAddresses>;
}

export interface Service {
  /** Rejects if a port or the directory cannot be had; nothing is left open then. */
  start(): Promise<ServiceAddresses>;
  strike(incident: Incident): void;
  stop(): Promise<void>;
}

export interface ServiceDeps {
  clock: Clock;
  /** Hears of each incident as it begins. */
  announce(incident: Incident): void;
}

const tickMs = 250;

function createRoles(options: ServiceOptions, clock: Clock): RunningRole[] {
  const port = (base: number, index: number) => (base === 0 ? 0 : base + index);
  return roles.map((role, index) => {
    const random = createRandom(options.seed + index + 1);
    const { directory, rotateBytes, ratePerSecond, healthPort, metricsPort } = options;
    const ports = { health: port(healthPort, index), metrics: port(metricsPort, index) };
    const logPath = join(directory, `${role}.log`);
    return createRole({ role, logPath, rotateBytes, ports, ratePerSecond }, { clock, random });
  });
}

/** Four roles that work, log and fail as the specification's service does; all of it is make-believe. */
export function createService(options: ServiceOptions, { clock, announce }: ServiceDeps): Service {
  const running = createRoles(options, clock);
  const trouble = createTrouble(options.incidentEveryMs, {
    clock,
    random: createRandom(options.seed),
    announce,
    restart: (name, fatal) => running.find(({ role }) => role === name)?.restart(fatal),
  });
  let control: Listener | undefined;
  let cancelTick = () => {};
  let endTrouble = () => {};

  function tick() {
    for (const role of running) role.tick(trouble.conditions);
    cancelTick = clock.after(tickMs, tick);
  }

  async function stop() {
    cancelTick();
    endTrouble();
    await Promise.all([control?.close(), ...running.map((role) => role.stop())]);
  }

  async function open(): Promise<ServiceAddresses> {
    control = await listen(options.controlPort, controlListener(trouble.strike));
    const addresses: Partial<Record<Role, RoleAddresses>> = {};
    for (const role of running) addresses[role.role] = await role.start();
    tick();
    endTrouble = trouble.start();
    return {
      directory: options.directory,
      incident: `http://127.0.0.1:${control.port}/incident`,
      kinds: incidentKinds,
      roles: addresses as Record<Role, RoleAddresses>,
    };
  }

  return {
    start: () =>
      open().catch(async (thrown) => {
        await stop();
        throw thrown;
      }),
    strike: trouble.strike,
    stop,
  };
}
