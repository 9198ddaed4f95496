import { storeCheckSeverity } from '../../core/check-severity.ts';
import type { RawTags } from '../../core/model.ts';
import type { Trace } from '../connection.ts';
import { type Finding, type Sample, timeText } from '../probe.ts';
import type { FailingSince } from './store-changes.ts';
import { adviceOn } from './store-checks.ts';
import type { StoreKindName, StoreOptions } from './store-options.ts';
import type { CheckResult, StoreReport } from './store-report.ts';

const longestVersion = 40;
/** From this share of used connections on, there is no room left. */
const fullShare = 0.9;

/** The configuration of the database that was polled. */
interface FindingContext {
  labels: RawTags & { kind: StoreKindName };
  accept: StoreOptions['accept'];
  /** Since when the failing checks have failed. */
  failing: FailingSince;
  /** Further details for `/probes`. */
  about: Readonly<Record<string, unknown>>;
}

/** All checks of a poll. `changes` are those that compare it with earlier polls. */
export const allChecks = (
  report: StoreReport,
  changes: readonly CheckResult[],
  expectedSchema: string | undefined,
): CheckResult[] => [
  ...schemaCheck(report, expectedSchema),
  ...connectionsCheck(report),
  ...changes,
  ...report.checks,
];

/**
 * The finding of a poll with all of its checks. A check whose failure the owner accepts is shown in the details with the owner's
 * reason. It has no series, so no alert selects it.
 */
export function storeFinding(
  report: StoreReport,
  all: readonly CheckResult[],
  phasesMs: Trace['phasesMs'],
  { labels, accept, failing: since, about }: FindingContext,
): Finding {
  const { tlsNotAfterMs, walArchiveFailures, roundTripMs } = report;
  const counted = all.filter(({ check }) => accept[check] === undefined);
  const failing = counted.filter(({ holds }) => holds === false).map(({ check }) => check);
  return {
    msg: summaryOf(report, failing),
    gauges: [...gaugesOf(report, labels), ...checkGauges(counted, labels)],
    ...(walArchiveFailures !== undefined && {
      totals: [{ name: 'svc_store_wal_archive_failures_total', labels, value: walArchiveFailures }],
    }),
    ...(tlsNotAfterMs !== undefined && { tlsNotAfterMs }),
    phasesMs: { ...phasesMs, round_trip: roundTripMs },
    failedChecks: failing.filter((check) => storeCheckSeverity[check] !== 'advice'),
    details: {
      ...about,
      ...detailsOf(report),
      readOnlySince: timeOf(since.readOnly),
      checks: all.map((result) => explained(result, since, labels.kind, accept[result.check])),
    },
  };
}

/** What is known about the disk of a store that is down: without space the server may have ended, or hang. */
export function diskOfFailed(
  space: CheckResult,
  { labels, accept, failing }: Omit<FindingContext, 'about'>,
): Pick<Finding, 'gauges' | 'details'> {
  const { check } = space;
  return {
    gauges: accept[check] === undefined ? checkGauges([space], labels) : [],
    details: { checks: [explained(space, failing, labels.kind, accept[check])] },
  };
}

/**
 * Checks whether the schema is at least as new as expected. A schema that does not exist is too old for any service, even if no
 * version is expected.
 */
function schemaCheck(
  { schemaVersion, schemaMissing, schemaUnknown }: StoreReport,
  expected: string | undefined,
): CheckResult[] {
  const wanted = expected === undefined ? '' : `, expected ${expected} or newer`;
  if (schemaMissing !== undefined)
    return [{ check: 'schema', holds: false, found: `${schemaMissing}${wanted}` }];
  if (expected === undefined) return [];
  const isNewEnough = schemaVersion === undefined ? undefined : isAtLeast(schemaVersion, expected);
  const found = schemaVersion === undefined ? (schemaUnknown ?? 'no version') : `version ${schemaVersion}`;
  return [{ check: 'schema', holds: isNewEnough ?? 'unknown', found: `${found}${wanted}` }];
}

function connectionsCheck({ connections, connectionsMax }: StoreReport): CheckResult[] {
  if (connections === undefined || !connectionsMax) return [];
  const open = Object.values(connections).reduce((sum, count) => sum + count, 0);
  const found = `${open} of ${connectionsMax} connections are open`;
  return [{ check: 'connections', holds: open < fullShare * connectionsMax, found }];
}

function summaryOf(
  { serverVersion, replica, schemaVersion }: StoreReport,
  failing: readonly string[],
): string {
  return [
    serverVersion,
    ...(replica ? ['replica'] : []),
    ...(schemaVersion === undefined ? [] : [`schema ${schemaVersion}`]),
    ...(failing.length === 0 ? [] : [`failing checks: ${failing.join(' ')}`]),
  ].join(', ');
}

function gaugesOf(report: StoreReport, labels: RawTags): Sample[] {
  const { connections = {}, connectionsMax, readOnly, schemaVersion, walOldestUnarchivedMs } = report;
  const samples: Sample[] = [];
  const add = (name: Sample['name'], value: number | undefined, own: RawTags = {}) => {
    if (value !== undefined) samples.push({ name, labels: { ...labels, ...own }, value });
  };
  if (schemaVersion !== undefined)
    add('svc_store_schema_version_info', 1, { version: schemaVersion.slice(0, longestVersion) });
  for (const [state, count] of Object.entries(connections)) add('svc_store_connections', count, { state });
  add('svc_store_connections_max', connectionsMax);
  add('svc_store_read_only', readOnly === undefined ? undefined : Number(readOnly));
  add(
    'svc_store_wal_oldest_unarchived_timestamp_seconds',
    walOldestUnarchivedMs === undefined ? undefined : walOldestUnarchivedMs / 1000,
  );
  return samples;
}

/** The gauges of checks. An unknown check has no gauge: it neither passes nor fails. */
function checkGauges(results: readonly CheckResult[], labels: RawTags): Sample[] {
  return results.flatMap(({ check, holds }): Sample[] => {
    if (holds === 'unknown') return [];
    const gauge: Sample = { name: 'svc_store_check_ok', labels: { ...labels, check }, value: Number(holds) };
    return check === 'schema'
      ? [{ name: 'svc_store_schema_compatible', labels, value: Number(holds) }, gauge]
      : [gauge];
  });
}

function detailsOf(report: StoreReport): Readonly<Record<string, unknown>> {
  const { schemaVersion, schemaMissing, schemaUnknown, startedAtMs } = report;
  return {
    server: report.serverVersion,
    replica: report.replica,
    readOnly: report.readOnly,
    schema: schemaVersion ?? null,
    schemaMissing,
    schemaUnknown,
    startedAt: startedAtMs === undefined ? undefined : timeText(startedAtMs),
    identity: report.identity,
    timeline: report.timeline,
    tables: report.tables,
    unlogged: report.unlogged,
    connections: report.connections,
    connectionsMax: report.connectionsMax,
    ...report.details,
  };
}

const timeOf = (atMs: number | undefined) => (atMs === undefined ? undefined : timeText(atMs));

function explained(
  { lastsS: _, ...result }: CheckResult,
  failing: FailingSince,
  kind: StoreKindName,
  accepted: string | undefined,
): object {
  const { why, set, restart } = adviceOn(result.check, kind);
  const since = result.holds === false ? timeOf(failing[result.check]) : undefined;
  return { ...result, since, severity: storeCheckSeverity[result.check], accepted, why, set, restart };
}

const versionShape = /^\d+(?:\.\d+)*$/;

/**
 * Whether a version is at least as new as another, number by number: 0.10 is newer than 0.9, and 1.0 is 1.
 * Undefined if one of them is not a version.
 */
export function isAtLeast(found: string, expected: string): boolean | undefined {
  if (!versionShape.test(found) || !versionShape.test(expected)) return undefined;
  const [one, other] = [found, expected].map((version) => version.split('.').map(BigInt)) as [
    bigint[],
    bigint[],
  ];
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    const [ours, theirs] = [one[index] ?? 0n, other[index] ?? 0n];
    if (ours !== theirs) return ours > theirs;
  }
  return true;
}
