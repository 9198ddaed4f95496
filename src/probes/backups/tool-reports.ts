import { errorText } from '../../core/errors.ts';
import { type Artifact, type Evidence, unreadable } from './evidence.ts';
import { segmentOfLsn, segmentPosition } from './formats/segments.ts';
import {
  artifactOf,
  asList,
  asNumber,
  asText,
  asTime,
  evidenceOf,
  ofOneServer,
  type Reported,
} from './report-values.ts';
import type { ReportFormat } from './source-blocks.ts';

/**
 * Parses a tool's report. Throws `evidence_unreadable` if it does not have the form that the tool prints. A failure without a
 * time gets the time `nowMs`.
 */
export function parseReport(format: ReportFormat, text: string, nowMs: number): Evidence {
  let value: unknown;
  try {
    value = format === 'barman' ? jsonDocuments(text) : JSON.parse(withWholeNumbers(text));
  } catch (thrown) {
    throw unreadable(`the command printed no JSON for format ${format}`, thrown);
  }
  try {
    return readers[format](value, nowMs);
  } catch (thrown) {
    const why = `the command printed JSON, but not in the form of ${format}: ${errorText(thrown)}`;
    throw unreadable(why, thrown);
  }
}

/** The text with the identifiers of clusters as strings: they have more digits than a number of JavaScript can hold. */
const withWholeNumbers = (text: string): string => text.replaceAll(/("system-id"\s*:\s*)(\d+)/g, '$1"$2"');

/**
 * Parses one or more JSON documents. Barman prints a document on one line without an end, so that the documents of several calls
 * follow each other directly.
 */
function jsonDocuments(text: string): unknown[] {
  try {
    return [JSON.parse(text)];
  } catch {
    const lines = text.replaceAll(/\}\s*\{(?=\s*")/g, '}\n{').split('\n');
    return lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line) as unknown);
  }
}

/**
 * Reads the reports of tools that manage backups by themselves, from a parsed document, or for Barman a list of documents. Throws
 * if a document does not have the form that the tool prints.
 */
const readers: Readonly<Record<ReportFormat, (value: unknown, nowMs: number) => Evidence>> = {
  pgbackrest: readPgBackRest,
  walg: readWalG,
  barman: readBarman,
  json: readPlain,
};

/**
 * Reads `pgbackrest info --output=json`: each stanza has a status and backups with `error`. The range of its archive names two
 * segments and not what is between them. If a server was upgraded or replaced, its backups belong to databases with different
 * `id`s.
 */
function readPgBackRest(value: unknown, nowMs: number): Evidence {
  const stanzas = asList(value);
  ofOneServer(
    stanzas.map(({ name }) => name),
    'stanzas',
    'by --stanza',
  );
  const evidence = stanzas.map((stanza) => readStanza(stanza, nowMs));
  return evidenceOf(
    evidence.flatMap(({ artifacts }) => artifacts),
    {
      missingDirectory: evidence.find(({ missingDirectory }) => missingDirectory)?.missingDirectory,
      failures: evidence.flatMap(({ failures }) => failures),
    },
  );
}

/** The codes for the status of a stanza (pgBackRest, command/info/info.c). */
const stanzaStatus = { ok: 0, missingPath: 1, noBackups: 2 } as const;

function readStanza(stanza: Record<string, unknown>, nowMs: number): Evidence {
  const { code, message } = stanza.status as { code: unknown; message?: unknown };
  const name = String(stanza.name);
  const databases = asList(stanza.db ?? []);
  const newest = Math.max(...databases.map(({ id }) => asNumber(id)));
  const isCurrent = ({ database }: Record<string, unknown>) =>
    !Number.isFinite(newest) || (database as { id?: unknown } | undefined)?.id === newest;
  const artifacts = asList(stanza.backup).map((backup) => {
    const { start, stop } = backup.timestamp as { start: unknown; stop: unknown };
    const { size } = backup.info as { size: unknown };
    return artifactOf({
      id: asText(backup.label),
      startMs: asNumber(start) * 1000,
      endMs: asNumber(stop) * 1000,
      sizeBytes: asNumber(size),
      // `error` is set if a page did not match its checksum while it was copied.
      verified: backup.error === true ? 'corrupt' : 'ok',
      method: 'postgres_base',
      parent: typeof backup.prior === 'string' ? backup.prior : undefined,
      systemId: systemIdOf(backup, databases),
      ...(isCurrent(backup) && {
        wal: pgBackRestWal(backup),
        walStart: (backup.archive as { start?: string } | null | undefined)?.start,
      }),
    });
  });
  const isKnown = Object.values(stanzaStatus).some((known) => known === asNumber(code));
  return evidenceOf(artifacts, {
    ...(code === stanzaStatus.missingPath && { missingDirectory: `the repository of stanza ${name}` }),
    failures: isKnown
      ? []
      : [{ id: `stanza ${code}`, endMs: nowMs, msg: `stanza ${name}: ${String(message)}` }],
  });
}

/**
 * The identifier of the cluster to which a backup of pgBackRest belongs. The archive of an earlier cluster, in another folder,
 * has segments with the same names.
 */
function systemIdOf(
  backup: Record<string, unknown>,
  databases: Record<string, unknown>[],
): string | undefined {
  const of = (backup.database ?? {}) as Record<string, unknown>;
  const found = databases.find((each) => each.id === of.id && each['repo-key'] === of['repo-key']);
  return found?.['system-id'] as string | undefined;
}

const isSegment = (name: unknown): name is string => typeof name === 'string' && /^[0-9A-F]{24}$/.test(name);
const archiveRange = (first: unknown, last: unknown) =>
  isSegment(first) && isSegment(last) ? [{ first, last }] : [];

function pgBackRestWal(backup: Record<string, unknown>): Artifact['wal'] {
  const lsn = backup.lsn as { start?: string; stop?: string } | undefined;
  const archive = backup.archive as { start?: string } | undefined;
  if (!lsn?.start || !lsn.stop || !archive?.start) return undefined;
  return [{ timeline: Number.parseInt(archive.start.slice(0, 8), 16), start: lsn.start, end: lsn.stop }];
}

/**
 * Reads `wal-g backup-list --detail --json`, or `wal-g wal-show --detailed-json`, which also has the log of each timeline (WAL-G,
 * internal/databases/postgres: BackupDetail, TimelineInfo).
 */
function readWalG(value: unknown): Evidence {
  const all = asList(value ?? []);
  const timelines = all.filter((each) => each.end_segment !== undefined);
  const backups = timelines.length === 0 ? all : timelines.flatMap((each) => asList(each.backups ?? []));
  const names = backups.map(({ backup_name }) => asText(backup_name));
  // A delta names the first segment of its parent, which may be a delta, too.
  const parentOf = (name: string) => {
    const start = /_D_([0-9A-F]{24})$/.exec(name)?.[1];
    if (start === undefined) return undefined;
    return names.find((other) => other.startsWith(`base_${start}`)) ?? `base_${start}`;
  };
  const artifacts = backups.map((backup, index) => {
    const name = names[index]!;
    const walStart = /^base_([0-9A-F]{24})/.exec(name)?.[1];
    return artifactOf({
      id: name,
      startMs: asTime(backup.start_time),
      endMs: asTime(backup.finish_time),
      sizeBytes: asNumber(backup.compressed_size ?? backup.uncompressed_size ?? 0),
      // A backup is listed once its sentinel is written, after everything was stored. Nothing is read again.
      verified: 'unknown',
      method: 'postgres_base',
      parent: parentOf(name),
      walStart,
      wal: walGWal(backup, walStart),
    });
  });
  const starts = artifacts.flatMap(({ walStart }) => walStart ?? []).sort();
  const ranges = timelines.map((timeline) => walGRange(timeline, starts));
  return evidenceOf(artifacts, {
    archives: ranges.flatMap(({ archive }) => archive),
    gap: ranges.findLast(({ gap }) => gap !== undefined)?.gap,
  });
}

/** The positions are printed as numbers. */
function walGWal(backup: Record<string, unknown>, walStart: string | undefined): Artifact['wal'] {
  const { start_lsn: start, finish_lsn: end } = backup;
  if (typeof start !== 'number' || typeof end !== 'number' || walStart === undefined) return undefined;
  const text = (lsn: number) =>
    `${Math.floor(lsn / 2 ** 32).toString(16)}/${(lsn % 2 ** 32).toString(16)}`.toUpperCase();
  return [{ timeline: Number.parseInt(walStart.slice(0, 8), 16), start: text(start), end: text(end) }];
}

/** The range of a timeline. A timeline that lacks segments can be replayed from after the last missing segment. */
function walGRange(timeline: Record<string, unknown>, starts: readonly string[]) {
  const { id, start_segment: first, end_segment: last, status, missing_segments } = timeline;
  if (status === 'OK') return { archive: archiveRange(first, last) };
  const missing = (Array.isArray(missing_segments) ? missing_segments : []).filter(isSegment).sort();
  const lastMissing = missing.at(-1);
  if (lastMissing === undefined) return { archive: [], gap: `timeline ${id} has the status ${status}` };
  const next = (BigInt(`0x${lastMissing}`) + 1n).toString(16).toUpperCase().padStart(24, '0');
  // Segments that are missing before the oldest backup are not needed.
  const needed = missing.filter((name) => starts.some((start) => start <= name));
  const gap =
    needed.length === 0
      ? undefined
      : `${needed.length} segments are missing in the archive, from ${needed[0]} to ${needed.at(-1)}`;
  return { archive: archiveRange(next, last), gap };
}

/**
 * Reads `barman -f json list-backups SERVER`, a list of backups for each server, and `barman -f json show-backup SERVER ID`, one
 * backup with the range of its log; there may be several documents.
 */
function readBarman(value: unknown): Evidence {
  const documents = (Array.isArray(value) ? value : [value]) as Record<string, unknown>[];
  const messages = documents.flatMap((each) => (Array.isArray(each._ERROR) ? each._ERROR : []));
  const answers = documents.flatMap((each) =>
    Object.entries(each).flatMap(([server, answer]) => (server.startsWith('_') ? [] : [answer])),
  );
  if (answers.length === 0) throw new Error(messages.join('; ') || 'no server');
  const servers = documents.flatMap((each) => Object.keys(each).filter((server) => !server.startsWith('_')));
  ofOneServer(servers, 'servers', 'by its name');
  const isShown = (answer: unknown): answer is Record<string, unknown> =>
    typeof answer === 'object' && answer !== null && 'backup_id' in answer;
  const shown = new Map(answers.filter(isShown).map((backup) => [backup.backup_id, backup]));
  const listed = answers.filter((answer) => !isShown(answer)).flatMap(asList);
  const backups = listed.length === 0 ? [...shown.values()] : listed;
  const places = backups.map((backup) => ({ backup, shown: shown.get(backup.backup_id) }));
  const zoneMs = places.map(({ backup }) => zoneOf(backup)).find((ms) => ms !== undefined);
  const gaps = places.flatMap((place) => (place.shown ? (barmanGap(place.shown) ?? []) : []));
  const failed = backups.filter(({ status }) => status === 'FAILED');
  return evidenceOf(
    places
      .filter(({ backup }) => backup.status === 'DONE')
      .map((place) => barmanArtifact(place.backup, place.shown, zoneMs)),
    {
      gap: gaps.at(-1),
      failures: failed.map((backup) => ({
        id: asText(backup.backup_id),
        // The report has no end for a backup that failed.
        endMs: startOfBarman(asText(backup.backup_id), zoneMs),
        msg: `backup ${asText(backup.backup_id)} failed`,
      })),
    },
  );
}

interface BarmanShown {
  begin_time_timestamp?: string;
  end_time_timestamp?: string;
  begin_lsn?: string;
  end_lsn?: string;
  begin_wal?: string;
  end_wal?: string;
  timeline?: number;
}

const shownOf = (backup: Record<string, unknown> | undefined): BarmanShown =>
  (backup?.base_backup_information ?? {}) as BarmanShown;

function barmanArtifact(
  backup: Record<string, unknown>,
  shown: Record<string, unknown> | undefined,
  zoneMs: number | undefined,
): Artifact {
  const id = asText(backup.backup_id);
  const base = shownOf(shown);
  const end = base.end_time_timestamp ?? backup.end_time_timestamp;
  const { begin_lsn, end_lsn, timeline } = base;
  // If the server was a standby that lagged, these times are from the standby's clock.
  const unknown =
    'Barman does not report whether the server was a standby that lagged; only the archived log shows it';
  const wal =
    begin_lsn && end_lsn && timeline !== undefined
      ? [{ timeline, start: begin_lsn, end: end_lsn }]
      : undefined;
  const artifact = artifactOf({
    id,
    startMs: base.begin_time_timestamp
      ? asTime(Number(base.begin_time_timestamp))
      : startOfBarman(id, zoneMs),
    endMs: asTime(end ? Number(end) : backup.end_time),
    sizeBytes: asNumber(backup.size_bytes ?? 0),
    verified: 'unknown',
    method: 'postgres_base',
    walStart: base.begin_wal,
    wal,
  });
  return { ...artifact, content: { unknown } };
}

/** How far the local time that Barman prints is ahead of UTC: a finished backup states its end in both. */
function zoneOf({ end_time, end_time_timestamp }: Record<string, unknown>): number | undefined {
  if (typeof end_time !== 'string' || !end_time_timestamp) return undefined;
  const ms = Date.parse(`${end_time} UTC`) - Number(end_time_timestamp) * 1000;
  return Number.isNaN(ms) ? undefined : ms;
}

/** The start of a backup: its id is the time at which it began, on the clock of Barman's host. */
function startOfBarman(id: string, zoneMs: number | undefined): number {
  const digits = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)$/.exec(id)?.slice(1).map(Number);
  if (!digits) throw new Error(`${id} is not an id of Barman`);
  const [year, month, ...rest] = digits as [number, number, number, number, number, number];
  return zoneMs === undefined
    ? new Date(year, month - 1, ...rest).getTime()
    : Date.UTC(year, month - 1, ...rest) - zoneMs;
}

/**
 * What is missing in the log that follows a backup: it is incomplete if Barman counts fewer segments than there are between its
 * ends. Barman counts the segments in its own list, which still contains deleted files, so a complete count proves nothing.
 */
function barmanGap(shown: Record<string, unknown>): string | undefined {
  const { begin_wal: first, end_wal: end, begin_lsn } = shownOf(shown);
  const { last_available: last, no_of_files } = (shown.wal_information ?? {}) as Record<string, unknown>;
  if (!isSegment(first) || !isSegment(end) || !begin_lsn) return undefined;
  const id = asText(shown.backup_id);
  if (!isSegment(last) || last < end)
    return `the archive lacks segments of ${id}, which needs ${first} to ${end}`;
  // Segments of another timeline are counted separately.
  if (last.slice(0, 8) !== end.slice(0, 8)) return undefined;
  const missing = segmentsBetween(end, last, first, begin_lsn) - asNumber(no_of_files);
  return missing > 0
    ? `${missing} segments are missing in the archive between ${end} and ${last}`
    : undefined;
}

/** How many segments `last` is after `end`. Their size follows from the position of `lsn` in `first`. */
function segmentsBetween(end: string, last: string, first: string, lsn: string): number {
  const sizes = [16, 1, 2, 4, 8, 32, 64, 128, 256, 512, 1024].map((mib) => mib * 2 ** 20);
  const numberOf = (name: string, bytes: number) => segmentPosition('wal', name, 2 ** 32 / bytes)!.number;
  const bytes = sizes.find((size) => numberOf(first, size) === segmentOfLsn(lsn, size)) ?? sizes[0]!;
  return numberOf(last, bytes) - numberOf(end, bytes);
}

/**
 * Reads the form for the user's own scripts: `{"backups": [{id, start, end, size, ok, verified, parent}], "log": {from, to}}`.
 * Times are RFC 3339 or seconds since the epoch. Without `verified` nothing is known about a backup's integrity.
 */
function readPlain(value: unknown): Evidence {
  const { backups, log } = value as { backups?: unknown; log?: { from: unknown; to: unknown } };
  const all = asList(backups);
  const [fromMs, toMs] = log ? [asTime(log.from), asTime(log.to)] : [];
  return evidenceOf(
    all
      .filter(({ ok }) => ok !== false)
      .map((backup) =>
        withLog(
          { fromMs, toMs },
          {
            id: String(backup.id ?? backup.start),
            startMs: asTime(backup.start),
            endMs: asTime(backup.end ?? backup.start),
            sizeBytes: backup.size === undefined ? Number.MAX_SAFE_INTEGER : asNumber(backup.size),
            verified: backup.verified === undefined ? 'unknown' : backup.verified === true ? 'ok' : 'corrupt',
            method: 'other',
            parent: typeof backup.parent === 'string' ? backup.parent : undefined,
          },
        ),
      ),
    {
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

/** Adds the log of a report: a backup that began within the log can be restored to the end of the log. */
function withLog({ fromMs, toMs }: { fromMs?: number; toMs?: number }, reported: Reported): Artifact {
  const artifact = artifactOf(reported);
  if (fromMs === undefined || toMs === undefined || artifact.startMs < fromMs || artifact.endMs > toMs)
    return artifact;
  return { ...artifact, recoverableToMs: toMs };
}
