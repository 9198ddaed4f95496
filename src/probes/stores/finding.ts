import type { RawTags } from '../../core/model.ts';
import { storeCheckSeverity } from '../../core/reasons.ts';
import type { Finding, Sample } from '../probe.ts';
import { adviceOn } from './advice.ts';
import { timeText } from './changes.ts';
import type { StoreKind, StoreOptions } from './options.ts';
import type { StoreLook, StoreVerdict } from './store.ts';

const longestVersion = 40;

/**
 * The finding of a poll and its verdicts; `about` goes into the details. A check that the owner accepts is shown in
 * the details with the owner's reason; it has no series, so that no alert selects it.
 */
export function findingOf(
  look: StoreLook,
  every: readonly StoreVerdict[],
  accept: StoreOptions['accept'],
  labels: RawTags & { kind: StoreKind },
  about: Readonly<Record<string, unknown>>,
): Finding {
  const verdicts = every.filter(({ check }) => accept[check] === undefined);
  const { tlsNotAfterMs, walArchiveFailures, roundTripMs, phasesMs } = look;
  return {
    msg: sentence(look, verdicts),
    gauges: [...gaugesOf(look, labels), ...checkGauges(verdicts, labels)],
    ...(walArchiveFailures !== undefined && {
      totals: [{ name: 'svc_store_wal_archive_failures_total', labels, value: walArchiveFailures }],
    }),
    ...(tlsNotAfterMs !== undefined && { tlsNotAfterMs }),
    phasesMs: { ...phasesMs, round_trip: roundTripMs },
    failedChecks: failing(verdicts).filter((check) => check === 'schema'),
    details: {
      ...about,
      ...detailsOf(look),
      checks: every.map((verdict) => explained(verdict, labels.kind, accept[verdict.check])),
    },
  };
}

function sentence(
  { serverVersion, replica, schemaVersion }: StoreLook,
  verdicts: readonly StoreVerdict[],
): string {
  const failed = failing(verdicts);
  return [
    serverVersion,
    ...(replica ? ['replica'] : []),
    ...(schemaVersion === undefined ? [] : [`schema ${schemaVersion}`]),
    ...(failed.length === 0 ? [] : [`does not hold: ${failed.join(' ')}`]),
  ].join(', ');
}

const failing = (verdicts: readonly StoreVerdict[]): StoreVerdict['check'][] =>
  verdicts.filter(({ holds }) => holds === false).map(({ check }) => check);

function gaugesOf(look: StoreLook, labels: RawTags): Sample[] {
  const { connections = {}, connectionsMax, readOnly, schemaVersion, walOldestUnarchivedMs } = look;
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

/** What is unknown has no gauge: it is neither well nor not. */
function checkGauges(verdicts: readonly StoreVerdict[], labels: RawTags): Sample[] {
  return verdicts.flatMap(({ check, holds }): Sample[] => {
    if (holds === 'unknown') return [];
    const gauge: Sample = { name: 'svc_store_check_ok', labels: { ...labels, check }, value: Number(holds) };
    return check === 'schema'
      ? [{ name: 'svc_store_schema_compatible', labels, value: Number(holds) }, gauge]
      : [gauge];
  });
}

function detailsOf(look: StoreLook): Readonly<Record<string, unknown>> {
  const { serverVersion, replica, readOnly, schemaVersion, schemaUnknown, identity, timeline, startedAtMs } =
    look;
  return {
    server: serverVersion,
    replica,
    readOnly,
    schema: schemaVersion ?? null,
    schemaUnknown,
    startedAt: startedAtMs === undefined ? undefined : timeText(startedAtMs),
    identity,
    timeline,
    connections: look.connections,
    connectionsMax: look.connectionsMax,
    ...look.details,
  };
}

function explained(verdict: StoreVerdict, kind: StoreKind, accepted: string | undefined): object {
  const { why, set, restart } = adviceOn(verdict.check, kind);
  return { ...verdict, severity: storeCheckSeverity[verdict.check], accepted, why, set, restart };
}
