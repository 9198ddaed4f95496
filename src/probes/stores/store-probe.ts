import { parseAddress } from '../../core/address.ts';
import { errorText } from '../../core/errors.ts';
import { untilAborted } from '../connection.ts';
import type { Finding, Probe, ProbeDeps } from '../probe.ts';
import { createFreeSpace } from './free-space.ts';
import { archiveCheck, archivedLog, type LogArchive } from './log-archive.ts';
import { createRedact, type Redact } from './redact-secret.ts';
import { versionByCommand } from './schema-version.ts';
import { noticeChanges, readRemembered } from './store-changes.ts';
import type { StoreServer } from './store-connections.ts';
import { findingOf } from './store-finding.ts';
import type { StoreOptions, StoreRole } from './store-options.ts';
import type { CheckResult, StoreKind, StoreReport, StoreTarget } from './store-report.ts';

export interface StoreProbeDeps extends Pick<ProbeDeps, 'readSecret' | 'clock' | 'log'> {
  kind: StoreKind;
  /** Shared by the databases of the store. */
  server: StoreServer;
  /** Where the configuration says that segments of the store's log are archived. */
  archives?: readonly LogArchive[];
}

/** Polls one database of a store, or the store itself where no database is named. */
export function createStoreProbe(
  options: StoreOptions,
  role: StoreRole | '',
  { readSecret, clock, log, kind, server, archives = [] }: StoreProbeDeps,
): Probe {
  const labels = { store: options.name, kind: options.kind, database: role };
  const expectedSchema = role === '' ? undefined : options.schema[role];
  const about = { credentials: loginText(options), expectedSchema };
  const database = role === '' ? undefined : options.databases[role];
  const { command, query } = options.schema;

  const freeSpace = createFreeSpace(clock);
  const watch = kind.watch?.(clock);

  /** The checks for which the agent reads the host's file systems. */
  const hostChecks = async (report: StoreReport, target: StoreTarget, signal: AbortSignal) => {
    const space = await freeSpace.check(report.directories, target.address, signal);
    const archived = await untilAborted(
      Promise.all(report.log ? archives.map((archive) => archiveCheck(archive, report.log!)) : []),
      signal,
    );
    return [...(space ? [space] : []), ...archived];
  };

  const poll = async (target: StoreTarget, signal: AbortSignal): Promise<StoreReport> => {
    const byCommand = command !== undefined && database !== undefined;
    const report = await server.poll(target, { database, ...(!byCommand && { schema: { query } }) }, signal);
    const [version, checks] = await Promise.all([
      byCommand ? versionByCommand(command, target, database, clock, signal) : {},
      hostChecks(report, target, signal),
    ]);
    const compared = watch?.(report.watched) ?? [];
    return { ...report, ...version, checks: [...report.checks, ...compared, ...checks] };
  };

  const findingFor = (report: StoreReport, recalled: unknown): Finding => {
    const { remember, checks, news } = noticeChanges(readRemembered(recalled), report, clock.nowMs());
    const shown = report.log && { log: archivedLog(report.log, remember, clock.nowMs()) };
    for (const { check, found } of news)
      log.write('warn', 'a store has changed', { store: options.name, database: role, check, found });
    return {
      ...findingOf(report, checks, {
        labels,
        accept: options.accept,
        expectedSchema,
        about: { ...about, ...shown },
      }),
      remember,
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
      try {
        return findingFor(redacted(await poll(targetOf(options, password), signal), redact), recalled);
      } catch (thrown) {
        return { ...failureOf(kind, thrown, redact, signal), details: about, remember: recalled };
      }
    },
    close: () => server.close(),
  };
}

function targetOf(options: StoreOptions, password: string | undefined): StoreTarget {
  const { name, address, user, tls, databases, timeoutMs } = options;
  return {
    store: name,
    address: parseAddress(address)!,
    user,
    password,
    tls,
    databases: Object.values(databases).filter((one) => one !== undefined),
    timeoutMs,
  };
}

/** Takes secrets out of what a store says in words; what becomes a label or is compared stays as it is. */
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

/** What is thrown once the time is over was thrown because of that, whatever the driver makes of it. */
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
