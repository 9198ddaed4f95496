import type { IntegrityResult } from '../../core/reasons.ts';
import type { ArchivedLog } from '../stores/store-report.ts';
import { type Artifact, type Evidence, unreadable } from './evidence.ts';
import type { SegmentRun } from './segments.ts';

/** The reports of tools that keep backups by themselves, as JSON. */
export type ReportFormat = 'pgbackrest' | 'walg' | 'barman' | 'json';

/** Reads a tool's report. Throws `evidence_unreadable` when it is not of the form that the tool prints. */
export function parseReport(format: ReportFormat, text: string): Evidence {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw unreadable(`the command printed no JSON for format ${format}`, thrown);
  }
  try {
    return readers[format](value);
  } catch (thrown) {
    throw unreadable(`the command printed JSON, but not in the form of ${format}`, thrown);
  }
}

const readers: Readonly<Record<ReportFormat, (value: unknown) => Evidence>> = {
  pgbackrest: readPgBackRest,
  walg: readWalG,
  barman: readBarman,
  json: readPlain,
};

const asList = (value: unknown): Record<string, unknown>[] => {
  if (!Array.isArray(value)) throw new Error('not a list');
  return value as Record<string, unknown>[];
};
const asNumber = (value: unknown): number => {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Error('not a number');
  return value;
};
const asText = (value: unknown): string => {
  if (typeof value !== 'string' || value === '') throw new Error('not a text');
  return value;
};
/** RFC 3339, or any date that names its zone. */
const asTime = (value: unknown): number => {
  if (typeof value === 'number') return value * 1000;
  const ms = Date.parse(asText(value));
  if (Number.isNaN(ms)) throw new Error('not a time');
  return ms;
};

interface Reported {
  id: string;
  startMs: number;
  endMs: number;
  sizeBytes: number;
  verified: IntegrityResult;
  method: Artifact['method'];
  parent?: string;
  wal?: Artifact['wal'];
  walStart?: string;
}

const artifactOf = (reported: Reported): Artifact => ({ ...reported, fingerprint: String(reported.endMs) });

const evidenceOf = (artifacts: Artifact[], rest: Partial<Evidence> = {}): Evidence => ({
  artifacts: artifacts.sort((one, other) => one.startMs - other.startMs),
  unfinished: [],
  failures: [],
  ...rest,
});

/** `pgbackrest info --output=json`: each stanza has a status, backups with `error`, and the archive's range. */
function readPgBackRest(value: unknown): Evidence {
  const stanzas = asList(value);
  const failures = stanzas.flatMap((stanza) => {
    const { code, message } = stanza.status as { code: unknown; message?: unknown };
    // 2: no valid backups; the empty list shows that.
    return asNumber(code) === 0 || code === 2
      ? []
      : [{ id: `stanza ${code}`, endMs: 0, msg: String(message) }];
  });
  const artifacts = stanzas.flatMap((stanza) =>
    asList(stanza.backup).map((backup) => {
      const { start, stop } = backup.timestamp as { start: unknown; stop: unknown };
      const { size } = backup.info as { size: unknown };
      return artifactOf({
        id: asText(backup.label),
        startMs: asNumber(start) * 1000,
        endMs: asNumber(stop) * 1000,
        sizeBytes: asNumber(size),
        // The tool checks each page while it copies; older versions do not report it.
        verified: backup.error === true ? 'corrupt' : 'ok',
        method: 'postgres_base',
        parent: typeof backup.prior === 'string' ? backup.prior : undefined,
        wal: pgBackRestWal(backup),
        walStart: (backup.archive as { start?: string } | undefined)?.start,
      });
    }),
  );
  const archives = stanzas.flatMap(({ archive }) =>
    Array.isArray(archive) ? archive.flatMap(({ min, max }) => archiveRange(min, max)) : [],
  );
  return evidenceOf(artifacts, { failures, archives });
}

const isSegment = (name: unknown): name is string => typeof name === 'string' && /^[0-9A-F]{24}$/.test(name);
const archiveRange = (first: unknown, last: unknown) =>
  isSegment(first) && isSegment(last) ? [{ first, last }] : [];

/**
 * Backups of a tool with an archive of its own can be restored as far as the archive reaches. A report names its
 * last segment only; the server knows when it archived that one, and what was written since.
 */
export function withArchive(evidence: Evidence, server: ArchivedLog | undefined): Evidence {
  const { archived, archivedAtMs = 0, wholeUntilMs = 0 } = server ?? {};
  const toMs = Math.max(archivedAtMs, wholeUntilMs);
  const isSame = (one: string, other: string) => one.slice(0, 8) === other.slice(0, 8);
  const archive = evidence.archives?.find(
    ({ last }) => archived !== undefined && isSame(last, archived) && last >= archived,
  );
  if (archive === undefined || toMs === 0) return evidence;
  const artifacts = evidence.artifacts.map((artifact) => {
    const start = artifact.walStart;
    const isIn = start !== undefined && isSame(start, archive.first) && start >= archive.first;
    return isIn && artifact.endMs <= toMs ? { ...artifact, recoverableToMs: toMs } : artifact;
  });
  return { ...evidence, artifacts };
}

function pgBackRestWal(backup: Record<string, unknown>): Artifact['wal'] {
  const lsn = backup.lsn as { start?: string; stop?: string } | undefined;
  const archive = backup.archive as { start?: string } | undefined;
  if (!lsn?.start || !lsn.stop || !archive?.start) return undefined;
  return [{ timeline: Number.parseInt(archive.start.slice(0, 8), 16), start: lsn.start, end: lsn.stop }];
}

/** `wal-g backup-list --detail --json`, or `wal-g wal-show --detailed-json`, which has the log of each timeline too. */
function readWalG(value: unknown): Evidence {
  const all = asList(value ?? []);
  const timelines = all.filter((each) => each.end_segment !== undefined);
  const backups = timelines.length === 0 ? all : timelines.flatMap((each) => asList(each.backups ?? []));
  return evidenceOf(
    backups.map((backup) =>
      artifactOf({
        id: asText(backup.backup_name),
        startMs: asTime(backup.start_time),
        endMs: asTime(backup.finish_time),
        sizeBytes: asNumber(backup.compressed_size ?? backup.uncompressed_size ?? 0),
        // The sentinel, without which a backup is not listed, is written when all of it is stored; nothing is
        // read again.
        verified: 'unknown',
        method: 'postgres_base',
        parent: /_D_([0-9A-F]{24})$/.exec(asText(backup.backup_name))?.[1]?.replace(/^/, 'base_'),
        walStart: /^base_([0-9A-F]{24})/.exec(asText(backup.backup_name))?.[1],
      }),
    ),
    {
      // A timeline that lacks segments has no certain end.
      archives: timelines
        .filter(({ status }) => status === 'OK')
        .flatMap(({ start_segment, end_segment }) => archiveRange(start_segment, end_segment)),
    },
  );
}

/** `barman -f json list-backups SERVER`: a list of backups for each server. */
function readBarman(value: unknown): Evidence {
  const backups = Object.values(value as Record<string, unknown>).flatMap(asList);
  const done = backups.filter(({ status }) => status === 'DONE');
  return evidenceOf(
    done.map((backup) =>
      artifactOf({
        id: asText(backup.backup_id),
        startMs: asTime(
          backup.begin_time_timestamp
            ? Number(backup.begin_time_timestamp)
            : (backup.backup_id_time ?? backup.begin_time ?? backup.end_time),
        ),
        endMs: asTime(backup.end_time_timestamp ? Number(backup.end_time_timestamp) : backup.end_time),
        sizeBytes: asNumber(backup.size_bytes ?? 0),
        verified: 'unknown',
        method: 'postgres_base',
      }),
    ),
    {
      failures: backups
        .filter(({ status }) => status === 'FAILED')
        .map((backup) => ({
          id: asText(backup.backup_id),
          endMs: asTime(backup.end_time_timestamp ? Number(backup.end_time_timestamp) : backup.end_time),
          msg: `backup ${asText(backup.backup_id)} failed`,
        })),
    },
  );
}

/**
 * The form for custom scripts: `{"backups": [{id, start, end, size, ok, verified, parent}], "log": {from, to}}`.
 * Times are RFC 3339 or seconds since the epoch; without `verified` nothing is known of a backup's integrity.
 */
function readPlain(value: unknown): Evidence {
  const { backups, log } = value as { backups?: unknown; log?: { from: unknown; to: unknown } };
  const all = asList(backups);
  const runs: SegmentRun[] | undefined = log && [
    {
      first: String(log.from),
      last: String(log.to),
      firstEndMs: asTime(log.from),
      lastEndMs: asTime(log.to),
      count: 1,
      sizeBytes: 0,
      from: { timeline: 0, number: 1 },
      to: { timeline: 0, number: 1 },
    },
  ];
  return evidenceOf(
    all
      .filter(({ ok }) => ok !== false)
      .map((backup) =>
        artifactOf({
          id: String(backup.id ?? backup.start),
          startMs: asTime(backup.start),
          endMs: asTime(backup.end ?? backup.start),
          sizeBytes: backup.size === undefined ? Number.MAX_SAFE_INTEGER : asNumber(backup.size),
          verified: backup.verified === undefined ? 'unknown' : backup.verified === true ? 'ok' : 'corrupt',
          method: 'other',
          parent: typeof backup.parent === 'string' ? backup.parent : undefined,
        }),
      ),
    {
      runs,
      failures: all
        .filter(({ ok }) => ok === false)
        .map((backup) => ({
          id: String(backup.id ?? backup.start),
          endMs: asTime(backup.end ?? backup.start),
          msg: typeof backup.msg === 'string' ? backup.msg : 'the backup failed',
        })),
    },
  );
}
