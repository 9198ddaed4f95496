import { createHash } from 'node:crypto';
import { accessSync, closeSync, constants, existsSync, openSync, readSync, statSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { dirname, resolve } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import type { PlacedFault } from './types.ts';
import type { Environment } from './yaml.ts';

const usualStateDirectory = '/var/lib/svc-agent';

/** Roles from the option, else from the variable (separated by commas), else undefined. */
export function namedRoles(
  options: readonly string[] | undefined,
  env: Environment,
): readonly string[] | undefined {
  if (options && options.length > 0) return options;
  const listed = env.SVC_AGENT_ROLES?.split(',').map((role) => role.trim());
  const named = listed?.filter((role) => role !== '');
  return named && named.length > 0 ? named : undefined;
}

/** The name of the pod if the environment contains it, else the name of the host. */
export function defaultInstance(env: Environment): string {
  return env.POD_NAME || hostname();
}

/**
 * The directory in `$STATE_DIRECTORY` (the first one, because systemd may give several), else the usual one if it is writable,
 * else one beside the file.
 */
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

/** Default places of `agent.yaml` (docs/reference/commands.md). */
const usualPlaces = ['agent.yaml', '/etc/svc-agent/agent.yaml'];

/** The first of the usual places at which a file exists, in the spelling for messages; undefined if there is none. */
export function findConfig(cwd: string): string | undefined {
  return usualPlaces.find((place) => existsSync(resolve(cwd, place)));
}

const maxFileBytes = 1024 * 1024;

/** Identifies the content of a file, or of another text that would be too long to keep. */
export const digestOf = (bytes: Uint8Array | string): string =>
  createHash('sha1').update(bytes).digest('hex');

/** The digest that stands for a file that cannot be read. */
export const unreadDigest = '';

/**
 * A configuration file's text, or the reason why there is none. `name` is the file's name in messages. The digest is undefined if
 * the content is not known because the file is too large. Never throws.
 */
export function readFileText(
  file: string,
  name: string,
): { text: string; digest: string } | { fault: PlacedFault; digest?: string } {
  const refuse = (what: string, allowed: string, digest?: string) => ({
    fault: { where: name, what, allowed, path: '', place: { file: name, line: 1, column: 1 } },
    digest,
  });
  let bytes: Buffer;
  try {
    bytes = readBounded(file, maxFileBytes);
  } catch (error) {
    const what = unreadableFile(file) ?? `cannot be read, ${reason(error)}`;
    return refuse(what, 'name a file that exists and that the agent’s user can read', unreadDigest);
  }
  if (bytes.length > maxFileBytes) return refuse('larger than 1 MiB', 'name a configuration file');
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), digest: digestOf(bytes) };
  } catch {
    return refuse('not UTF-8', 'save it as UTF-8', digestOf(bytes));
  }
}

/** Reads at most one byte more than the bound, so that reading an endless device ends, too. */
export function readBounded(file: string, maxBytes: number): Buffer {
  // The opening of a pipe would otherwise wait until somebody writes to it.
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.allocUnsafe(maxBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readReady(descriptor, buffer.subarray(length));
    }
    return buffer.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** How long a program at the other end of a pipe, such as `<(COMMAND)` of a shell, may take. */
const longestSilenceMs = 10_000;
const pauseMs = 10;

/** Reads once there is something to read. */
function readReady(descriptor: number, into: Buffer): number {
  for (let waitedMs = 0; ; waitedMs += pauseMs) {
    try {
      return readSync(descriptor, into);
    } catch (error) {
      if (systemCode(error) !== 'EAGAIN' || waitedMs >= longestSilenceMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
    }
  }
}

/** The system's message without the system call and the path. */
function reason(error: unknown): string {
  return errorText(error).split(', ')[0]!;
}

/** Why the agent cannot read a file; undefined if it can. */
export function unreadableFile(file: string): string | undefined {
  try {
    if (statSync(file).isDirectory()) return 'a directory';
  } catch (error) {
    if (systemCode(error) === 'ELOOP') return 'a link that leads back to itself';
    return systemCode(error) === 'EACCES' ? 'not readable' : 'missing';
  }
  return isAllowed(file, constants.R_OK) ? undefined : 'not readable';
}

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

function statsOf(path: string) {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Why the agent cannot write a file, such as its log; undefined if it can. */
export function unwritableFile(file: string): string | undefined {
  const directory = statsOf(dirname(file));
  if (!directory) return 'its directory is missing';
  if (!directory.isDirectory()) return 'its directory is a file';
  if (!isAllowed(dirname(file), constants.W_OK | constants.X_OK)) return 'its directory is not writable';
  const there = statsOf(file);
  if (there?.isDirectory()) return 'a directory';
  return there && !isAllowed(file, constants.W_OK) ? 'not writable' : undefined;
}

/** Why the agent cannot write to a directory, or create it; undefined if it can. */
export function unwritableDirectory(directory: string): string | undefined {
  const there = statsOf(directory);
  if (there && !there.isDirectory()) return 'not a directory';
  if (there) return isAllowed(directory, constants.W_OK | constants.X_OK) ? undefined : 'not writable';
  const above = dirname(directory);
  const trouble = above === directory ? 'missing' : unwritableDirectory(above);
  return trouble && `missing, and ${above} is ${trouble}`;
}
