import { accessSync, constants, statSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { Environment } from './expand.ts';

const usualStateDirectory = '/var/lib/svc-agent';

/** Roles by option, else by variable (separated by commas), else undefined. */
export function namedRoles(
  options: readonly string[] | undefined,
  env: Environment,
): readonly string[] | undefined {
  if (options && options.length > 0) return options;
  const listed = env.SVC_AGENT_ROLES?.split(',').map((role) => role.trim());
  const named = listed?.filter((role) => role !== '');
  return named && named.length > 0 ? named : undefined;
}

/** The pod's name where the pod tells it, else the host's. */
export function defaultInstance(env: Environment): string {
  return env.POD_NAME || hostname();
}

/** `$STATE_DIRECTORY` (the first, as systemd may give several), else the usual one if writable, else beside the file. */
export function defaultStateDirectory(configFile: string, env: Environment): string {
  const given = env.STATE_DIRECTORY?.split(':')[0];
  if (given) return resolve(given);
  try {
    if (!statSync(usualStateDirectory).isDirectory()) throw new Error('not a directory');
    accessSync(usualStateDirectory, constants.W_OK | constants.X_OK);
    return usualStateDirectory;
  } catch {
    return resolve(dirname(configFile), '.svc-agent');
  }
}

/** Every address of the machine. */
export function machineAddresses(): ReadonlySet<string> {
  return new Set(
    Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address)),
  );
}
