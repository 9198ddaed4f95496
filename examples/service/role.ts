import type { Role } from '../../src/core/catalog.ts';
import type { Clock } from '../../src/core/ports.ts';
import { createDoors, type Ports } from './doors.ts';
import { healthOf } from './health.ts';
import type { Conditions } from './incidents.ts';
import { type LogFile, openLogFile } from './log-file.ts';
import type { MetricNames } from './options.ts';
import { createRoleProcess, type RoleProcess } from './process.ts';
import type { Random } from './random.ts';
import type { StoreState } from './store/store.ts';
import { clusterGroup } from './world.ts';

interface RoleOptions {
  role: Role;
  logPath: string;
  rotateBytes: number;
  ports: Ports;
  ratePerSecond: number;
  names: MetricNames;
}

/** Where a role can be looked at: two URLs and a file. */
export interface RoleAddresses {
  health: string;
  metrics: string;
  log: string;
}

/** A role from outside: it writes its log, answers on two ports, and can go down and come back. */
export interface RunningRole {
  readonly role: Role;
  /** Whether a process of it is at work. */
  readonly isUp: boolean;
  /** Rejects if a port or the log file cannot be had. */
  start(): Promise<RoleAddresses>;
  tick(conditions: Conditions): void;
  /** Ends the process, with a fatal entry if asked; another begins after some seconds of refused connections. */
  restart(fatal: boolean): void;
  stop(): Promise<void>;
}

/** How long nobody answers in a restart, and how long until a port that was taken meanwhile is tried again. */
const downMs = 4000;
const retryMs = 1000;

interface RoleDeps {
  clock: Clock;
  random: Random;
  storeState(): StoreState;
}

export function createRole(options: RoleOptions, { clock, random, storeState }: RoleDeps): RunningRole {
  const { role, ratePerSecond, names } = options;
  const doors = createDoors(options.ports);
  let log: LogFile | undefined;
  let process: RoleProcess | undefined;
  let isLost = false;
  let cancelBegin = () => {};
  let settled: Promise<unknown> = Promise.resolve();

  async function begin() {
    const next = createRoleProcess({ role, ratePerSecond, names, startMs: clock.nowMs() }, random);
    const bornMs = clock.monotonicMs();
    const health = () => healthOf({ ageMs: clock.monotonicMs() - bornMs, store: storeState(), isLost });
    const addresses = await doors.open({ health, families: next.families });
    process = next;
    return addresses;
  }

  function beginLater(delayMs: number) {
    cancelBegin = clock.after(delayMs, () => {
      settled = begin().catch(() => beginLater(retryMs));
    });
  }

  function end(fatal: boolean): Promise<void> {
    if (process) log?.append([process.lastWords(clock.nowMs(), fatal)]);
    process = undefined;
    return doors.close();
  }

  return {
    role,
    get isUp() {
      return process !== undefined;
    },
    start: async () => {
      log = openLogFile(options.logPath, options.rotateBytes);
      return { ...(await begin()), log: options.logPath };
    },
    tick: (conditions) => {
      isLost = conditions.lostCluster === clusterGroup.clusters[0].name;
      log?.append(process?.advance(clock.nowMs(), conditions) ?? []);
    },
    restart: (fatal) => {
      if (!process) return;
      settled = end(fatal);
      beginLater(downMs);
    },
    stop: async () => {
      cancelBegin();
      await settled;
      cancelBegin();
      await end(false);
      log?.close();
      log = undefined;
    },
  };
}
