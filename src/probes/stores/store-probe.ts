import { formatAddress, parseAddress } from '../../core/address.ts';
import { errorText } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { secretPatterns } from '../../core/secret-pattern.ts';
import { runCommand } from '../command.ts';
import { createTrace, type Trace, untilAborted } from '../connection.ts';
import type { Finding, Probe, ProbeDeps } from '../probe.ts';
import { waitRunning } from '../running-wait.ts';
import { createFreeSpace, type MeasureSpace } from './free-space.ts';
import {
  archivedLog,
  failingSince,
  noticeChanges,
  readDirectories,
  readFailingSince,
  readRemembered,
} from './store-changes.ts';
import type { StoreServer } from './store-connections.ts';
import { allChecks, diskOfFailed, storeFinding } from './store-finding.ts';
import type { StoreOptions, StoreRole } from './store-options.ts';
import type {
  CheckResult,
  DatabaseReport,
  LogState,
  StorageDirectory,
  StoreKind,
  StoreReport,
  StoreTarget,
} from './store-report.ts';

interface StoreProbeDeps extends Pick<ProbeDeps, 'readSecret' | 'clock' | 'log'> {
  kind: StoreKind;
  /** The connection to the store, which its databases share. */
  server: StoreServer;
  /** Where segments of the store's log are archived according to the configuration. */
  archives?: readonly LogArchive[];
  /** Default: what the operating system says. */
  measureSpace?: MeasureSpace;
}

/** The measurement of the directories that the last report named, which begins with the poll. */
interface Measurement {
  directories: readonly StorageDirectory[] | undefined;
  /** The check; undefined if nothing could be measured. Never rejects. */
  space: Promise<CheckResult | undefined>;
}

/** Polls one database of a store, or the store itself if no database is named. */
export function createStoreProbe(
  options: StoreOptions,
  role: StoreRole | '',
  { readSecret, clock, log, kind, server, archives = [], measureSpace }: StoreProbeDeps,
): Probe {
  const labels = { store: options.name, kind: options.kind, database: role };
  const expectedSchema = role === '' ? undefined : options.schema[role];
  const about = { credentials: loginText(options), address: options.address, expectedSchema };
  const database = role === '' ? undefined : options.databases[role];
  const { command, query } = options.schema;

  const freeSpace = createFreeSpace(clock, measureSpace);
  const watch = kind.watch?.(clock);
  /** When the last poll that was answered asked the server. */
  let askedAtMonotonicMs: number | undefined;

  /** The results of the checks for which the agent reads the host's file systems. */
  const hostChecks = async (
    report: StoreReport,
    target: StoreTarget,
    { directories, space: measuring }: Measurement,
    signal: AbortSignal,
  ) => {
    const before = await measuring;
    const isMeasured = JSON.stringify(directories) === JSON.stringify(report.directories);
    const space = isMeasured ? before : await freeSpace.check(report.directories, target.address, signal);
    const archived = await untilAborted(
      Promise.all(report.log ? archives.map((archive) => archive.check(report.log!)) : []),
      signal,
    );
    return [...(space ? [space] : []), ...archived];
  };

  const poll = async (
    target: StoreTarget,
    trace: Trace,
    before: Measurement,
    signal: AbortSignal,
  ): Promise<StoreReport> => {
    const byCommand = command !== undefined && database !== undefined;
    const request = { database, ...(!byCommand && { schema: { query } }) };
    const report = await server.poll(target, request, trace, signal);
    const [version, checks] = await Promise.all([
      byCommand ? versionByCommand(command, target, database, clock, signal) : {},
      hostChecks(report, target, before, signal),
    ]);
    const compared = watch?.(report.watched) ?? [];
    return { ...report, ...version, checks: [...report.checks, ...compared, ...checks] };
  };

  const findingFor = (report: StoreReport, { phasesMs }: Trace, recalled: unknown): Finding => {
    // What is written while the poll runs, or while its report is used for another database, is not in the report.
    const toWallMs = clock.nowMs() - clock.monotonicMs();
    const askedMs = report.askedAtMonotonicMs + toWallMs;
    const clockAheadMs = aheadOf(report.nowMs, askedMs, report.answeredAtMonotonicMs + toWallMs);
    const nowMs = clock.nowMs();
    const {
      remember,
      checks: changes,
      news,
    } = noticeChanges(
      readRemembered(recalled),
      report,
      nowMs,
      report.askedAtMonotonicMs - (askedAtMonotonicMs ?? report.askedAtMonotonicMs),
    );
    askedAtMonotonicMs = report.askedAtMonotonicMs;
    const checks = allChecks(report, changes, expectedSchema);
    const failing = failingSince(readFailingSince(recalled), report, checks, nowMs);
    const shown = report.log && { log: archivedLog(report.log, remember, askedMs) };
    for (const { check, found } of news)
      log.write('warn', 'a store has changed', { store: options.name, database: role, check, found });
    return {
      ...storeFinding(report, checks, phasesMs, {
        labels,
        accept: options.accept,
        failing,
        about: { ...about, ...shown, clockAheadMs },
      }),
      // A server that a full disk has ended does not name its directories.
      remember: { ...remember, failing, directories: report.directories },
    };
  };

  return {
    async check(signal, recalled) {
      let password: string | undefined;
      try {
        password = options.password === undefined ? undefined : await readSecret(options.password);
      } catch (thrown) {
        return { reason: 'credentials', msg: errorText(thrown), details: about, remember: recalled };
      }
      const redact = createRedact(password);
      const trace = createTrace(clock);
      const target = targetOf(options, password);
      // The measurement begins with the poll: once the time of the check is over, nothing can be measured.
      const directories = readDirectories(recalled);
      let space: CheckResult | undefined;
      const measuring = freeSpace.check(directories, target.address, signal).then(
        (found) => {
          space = found;
          return found;
        },
        () => undefined,
      );
      try {
        const report = await poll(target, trace, { directories, space: measuring }, signal);
        return findingFor(redacted(report, redact), trace, recalled);
      } catch (thrown) {
        const { phasesMs, tlsNotAfterMs } = trace;
        const failure = failureOf(kind, thrown, redact, signal);
        // The standbys of the store are recognized by this identity.
        const details = { ...about, identity: readRemembered(recalled).identity };
        if (!signal.aborted) await measuring;
        const context = { labels, accept: options.accept, failing: readFailingSince(recalled) };
        const disk = space?.holds === false ? diskOfFailed(space, context) : undefined;
        return {
          ...failure,
          ...{ phasesMs, tlsNotAfterMs, gauges: disk?.gauges, remember: recalled },
          details: { ...details, ...disk?.details },
        };
      }
    },
  };
}

/** Synchronized clocks of hosts differ by less than this. */
const usualSkewMs = 2_000;

/** How far a server's clock is ahead at most, ms; 0 if it may be right. Undefined if the server does not state its time. */
function aheadOf(serverMs: number | undefined, askedMs: number, answeredMs: number): number | undefined {
  if (serverMs === undefined) return undefined;
  return serverMs - answeredMs <= usualSkewMs ? 0 : Math.ceil(serverMs - askedMs);
}

export function targetOf(options: StoreOptions, password: string | undefined): StoreTarget {
  const { name, address, user, tls, databases, timeoutMs } = options;
  return {
    store: name,
    address: parseAddress(address)!,
    user,
    isServiceUser: options.credentials === 'service',
    password,
    tls,
    databases: Object.values(databases).filter((one) => one !== undefined),
    timeoutMs,
  };
}

/** Removes secrets from the texts in a store's report. Values that become labels or are compared are not changed. */
function redacted(report: StoreReport, redact: Redact): StoreReport {
  const { schemaUnknown, schemaMissing, details } = report;
  const clean = (result: CheckResult) => ({ ...result, found: redact(result.found) });
  return {
    ...report,
    ...(schemaUnknown !== undefined && { schemaUnknown: redact(schemaUnknown) }),
    ...(schemaMissing !== undefined && { schemaMissing: redact(schemaMissing) }),
    ...(details !== undefined && { details: redact.deep(details) }),
    checks: report.checks.map(clean),
  };
}

/**
 * The failure for a thrown error. An error that is thrown after the time is over is due to that, whatever the driver makes of it.
 */
function failureOf(kind: StoreKind, thrown: unknown, redact: Redact, signal: AbortSignal): Finding {
  const { reason, msg } = kind.faultOf(thrown);
  const namesPhase = reason === 'connect_timeout' || reason === 'resolve' || reason === 'tls';
  return { reason: signal.aborted && !namesPhase ? 'too_slow' : reason, msg: redact(msg) };
}

function loginText({ credentials, user }: StoreOptions): string {
  if (user === undefined) return 'no user is configured';
  return credentials === 'service'
    ? `user ${user}, with the password of the service itself`
    : `user ${user}, the agent’s own`;
}

const hidden = '***';

/** Matches the user part of any URL. */
const userInfo = /(\w:\/\/)[^\s/@]+@/g;

interface Redact {
  (text: string): string;
  /** Redacts every string in a JSON value, including keys. */
  deep<T>(value: T): T;
}

/**
 * A secret that is shorter than this is replaced only where it is a whole word, as drivers repeat it: in quotes, between spaces,
 * in an address. Within words it cannot be distinguished from the text, so nothing is disclosed, and replacing it there would
 * make messages unreadable.
 */
const shortBelow = 4;

/** Replaces a secret, in whatever form a text writes it, and the user part of any URL. */
export function createRedact(secret = ''): Redact {
  const asWord = (pattern: string) => `(?:(?<!\\w)|(?!\\w))(?:${pattern})(?:(?!\\w)|(?<!\\w))`;
  const isShort = secret.length < shortBelow;
  const patterns = secretPatterns(secret).map(
    (pattern) => new RegExp(isShort ? asWord(pattern) : pattern, 'g'),
  );
  const plain = (text: string) =>
    patterns.reduce((rest, pattern) => rest.replace(pattern, hidden), text).replace(userInfo, `$1${hidden}@`);
  const deep = (value: unknown): unknown => {
    if (typeof value === 'string') return plain(value);
    if (Array.isArray(value)) return value.map(deep);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, below]) => [plain(key), deep(below)]));
  };
  return Object.assign(plain, { deep: <T>(value: T) => deep(value) as T });
}

/** A place in which segments of a store's log are archived according to the configuration. */
export interface LogArchive {
  /** Checks whether the segment that the server calls archived is there. Never rejects. */
  check(log: LogState): Promise<CheckResult>;
}

/** Matches two or three numbers with dots between them that are not part of an address, a date or a time. */
const version = /(?<![\w.:/-])v?(\d+\.\d+(?:\.\d+)?)(?![\w:/-]|\.\d)/;

/** The first version in the output of a schema tool; a number without dots counts only if the output has nothing else. */
export function versionIn(output: string): string | undefined {
  const alone = /^\s*v?(\d+)\s*$/.exec(output)?.[1];
  return alone ?? version.exec(output)?.[1];
}

const mostOutputBytes = 65_536;

/**
 * Runs a program that prints the schema's version. If it prints none, the version is unknown: the store itself may be
 * healthy.
 */
async function versionByCommand(
  command: readonly string[],
  { address, timeoutMs }: StoreTarget,
  database: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Pick<DatabaseReport, 'schemaVersion' | 'schemaUnknown'>> {
  const values: Readonly<Partial<Record<string, string>>> = {
    endpoint: formatAddress(address),
    keyspace: database,
    database,
  };
  const filled = command.map((part) => part.replace(/\{([a-z]+)\}/g, (whole, name) => values[name] ?? whole));
  const late = new AbortController();
  // A program that hangs must not cost the store's own answers.
  const { cancel } = waitRunning(timeoutMs / 2, clock, () => late.abort());
  try {
    const limits = { signal: AbortSignal.any([signal, late.signal]), maxBytes: mostOutputBytes };
    const found = versionIn((await runCommand(filled, limits)).stdout);
    return found === undefined
      ? { schemaUnknown: `${command[0]} printed no version` }
      : { schemaVersion: found };
  } catch (thrown) {
    return { schemaUnknown: errorText(thrown) };
  } finally {
    cancel();
  }
}
