import type { Role } from '../../src/core/catalog.ts';
import type { Clock } from '../../src/core/ports.ts';
import { type Conditions, type Incident, type IncidentKind, randomIncident } from './incidents.ts';
import type { Random } from './random.ts';
import type { DomainName } from './world.ts';

/** Makes incidents happen, now and then and on demand. */
export interface Trouble {
  readonly conditions: Conditions;
  strike(incident: Incident): void;
  /** Begins with those that come by themselves; returns the end of them. */
  start(): () => void;
}

export interface TroubleOptions {
  /** Mean time between incidents; 0: none comes by itself. */
  everyMs: number;
  /** Those that come by themselves. */
  kinds: readonly IncidentKind[];
}

export interface TroubleDeps {
  clock: Clock;
  random: Random;
  /** Hears of each incident as it begins. */
  announce(incident: Incident): void;
  restart(role: Role, fatal: boolean): void;
  failOver(domain: DomainName): void;
}

/** Incidents that are a condition for a while. */
const lastings: Readonly<Partial<Record<IncidentKind, { condition: keyof Conditions; lastsMs: number }>>> = {
  'persistence-errors': { condition: 'failingRole', lastsMs: 20_000 },
  backlog: { condition: 'starvedTaskList', lastsMs: 40_000 },
  'store-down': { condition: 'refusingStore', lastsMs: 20_000 },
  'schema-behind': { condition: 'outdatedDatabase', lastsMs: 40_000 },
};

export function createTrouble(
  { everyMs, kinds }: TroubleOptions,
  { clock, random, announce, restart, failOver }: TroubleDeps,
): Trouble {
  const conditions: Conditions = {};
  const cancels: Partial<Record<keyof Conditions, () => void>> = {};

  /** One that comes while another of its kind lasts takes its place. */
  function hold(condition: keyof Conditions, target: string, lastsMs: number) {
    cancels[condition]?.();
    conditions[condition] = target;
    cancels[condition] = clock.after(lastsMs, () => {
      conditions[condition] = undefined;
    });
  }

  function strike(incident: Incident) {
    announce(incident);
    const { kind, target } = incident;
    const lasting = lastings[kind];
    if (lasting) hold(lasting.condition, target, lasting.lastsMs);
    else if (kind === 'failover') failOver(target as DomainName);
    else restart(target as Role, kind === 'fatal');
  }

  function start(): () => void {
    let cancel = () => {};
    const wait = () => {
      cancel = clock.after(everyMs * (0.5 + random.next()), () => {
        strike(randomIncident(random, kinds));
        wait();
      });
    };
    if (everyMs > 0) wait();
    return () => cancel();
  }

  return { conditions, strike, start };
}
