import type { Role } from '../../src/core/catalog.ts';
import type { Clock } from '../../src/core/ports.ts';
import { type Conditions, type Incident, randomIncident } from './incidents.ts';
import type { Random } from './random.ts';

/** Makes incidents happen, now and then and on demand. */
export interface Trouble {
  readonly conditions: Conditions;
  strike(incident: Incident): void;
  /** Begins with those that come by themselves; returns the end of them. */
  start(): () => void;
}

export interface TroubleDeps {
  clock: Clock;
  random: Random;
  /** Hears of each incident as it begins. */
  announce(incident: Incident): void;
  restart(role: Role, fatal: boolean): void;
}

const persistenceErrorsLastMs = 20_000;
const backlogGrowsMs = 40_000;

/** `everyMs` is the mean time between incidents; 0: none comes by itself. */
export function createTrouble(everyMs: number, { clock, random, announce, restart }: TroubleDeps): Trouble {
  const conditions: Conditions = {};

  function lasting(condition: keyof Conditions, target: string, lastsMs: number) {
    conditions[condition] = target;
    clock.after(lastsMs, () => {
      if (conditions[condition] === target) conditions[condition] = undefined;
    });
  }

  function strike(incident: Incident) {
    announce(incident);
    const { kind, target } = incident;
    if (kind === 'backlog') lasting('starvedTaskList', target, backlogGrowsMs);
    else if (kind === 'persistence-errors') lasting('failingRole', target, persistenceErrorsLastMs);
    else restart(target, kind === 'fatal');
  }

  function start(): () => void {
    let cancel = () => {};
    const wait = () => {
      cancel = clock.after(everyMs * (0.5 + random.next()), () => {
        strike(randomIncident(random));
        wait();
      });
    };
    if (everyMs > 0) wait();
    return () => cancel();
  }

  return { conditions, strike, start };
}
