import type { Role } from '../../src/core/catalog.ts';
import type { Clock } from '../../src/core/ports.ts';
import { type Conditions, type Incident, type IncidentKind, randomIncident } from './incidents.ts';
import type { Random } from './random.ts';
import type { DomainName } from './world.ts';

/** Makes incidents happen, now and then and on demand. */
export interface Trouble {
  readonly conditions: Conditions;
  /** Begins an incident, which lasts until it is ended. It replaces one of its kind. */
  strike(incident: Incident): void;
  /** Ends the incident of a kind, or all incidents; returns those that it ended. */
  end(kind?: IncidentKind): Incident[];
  /** Begins with the incidents that come by themselves. Returns a function that stops this, and every incident. */
  start(): () => void;
}

interface TroubleOptions {
  /** Mean time between incidents that come by themselves, which last a third of it; 0: none does. */
  everyMs: number;
  /** Those that come by themselves. */
  kinds: readonly IncidentKind[];
}

interface TroubleDeps {
  clock: Clock;
  random: Random;
  announce(incident: Incident, phase: 'began' | 'ended'): void;
  restart(role: Role, fatal: boolean): void;
  failOver(domain: DomainName): void;
}

/** Time between two restarts of a role that restarts again and again. */
const restartEveryMs = 15_000;

const conditionOf: Readonly<Partial<Record<IncidentKind, keyof Conditions>>> = {
  'persistence-errors': 'failingRole',
  backlog: 'starvedTaskList',
  'store-down': 'refusingStore',
  'schema-behind': 'outdatedDatabase',
  'cluster-down': 'lostCluster',
  'replication-behind': 'laggingCluster',
};

export function createTrouble(
  { everyMs, kinds }: TroubleOptions,
  { clock, random, announce, restart, failOver }: TroubleDeps,
): Trouble {
  const conditions: Conditions = {};
  const lasting = new Map<IncidentKind, { incident: Incident; end: () => void }>();

  /** Returns what ends it. */
  function begin({ kind, target }: Incident): () => void {
    const condition = conditionOf[kind];
    if (condition) {
      conditions[condition] = target;
      return () => delete conditions[condition];
    }
    if (kind === 'failover') {
      failOver(target as DomainName);
      return () => failOver(target as DomainName);
    }
    let cancel = () => {};
    const again = () => {
      restart(target as Role, kind === 'fatal');
      cancel = clock.after(restartEveryMs, again);
    };
    again();
    return () => cancel();
  }

  function end(kind?: IncidentKind): Incident[] {
    const ended = [...lasting.values()].filter(
      ({ incident }) => kind === undefined || incident.kind === kind,
    );
    for (const one of ended) {
      lasting.delete(one.incident.kind);
      one.end();
      announce(one.incident, 'ended');
    }
    return ended.map(({ incident }) => incident);
  }

  function strike(incident: Incident) {
    end(incident.kind);
    announce(incident, 'began');
    lasting.set(incident.kind, { incident, end: begin(incident) });
  }

  function start(): () => void {
    let cancel = () => {};
    const wait = () => {
      cancel = clock.after(everyMs * (0.5 + random.next()), () => {
        const incident = randomIncident(random, kinds);
        strike(incident);
        cancel = clock.after(everyMs / 3, () => {
          if (lasting.get(incident.kind)?.incident === incident) end(incident.kind);
          wait();
        });
      });
    };
    if (everyMs > 0) wait();
    return () => {
      cancel();
      for (const one of lasting.values()) one.end();
      lasting.clear();
    };
  }

  return { conditions, strike, end, start };
}
