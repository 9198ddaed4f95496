import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { errorText } from '../../core/errors.ts';
import { type RehearsalFailureReason, rehearsalFailureReasons } from '../../core/reasons.ts';
import { formatDuration } from '../../core/text-formats.ts';
import { type BackupsOptions, drillName, type Recoverable, recoverables } from '../backups/backups.ts';
import type { BackupOptions } from '../backups/block.ts';
import type { Finding, Probe, ProbeDeps, ProbeRow, Sample } from '../probe.ts';
import type { StoreOptions, StoreRole } from '../stores/store-options.ts';
import type { RehearsalOptions } from './block.ts';
import type { RehearsalAnswer, RehearsalRecord, RehearsalRequest } from './rehearsal.ts';
import type { RunningRehearsal, StartRehearsal } from './rehearsal-process.ts';

export interface RehearsalsOptions extends BackupsOptions {
  recovery?: { rehearsal?: RehearsalOptions | undefined };
}

/** How often a row checks whether a rehearsal is due. */
const intervalMs = 30_000;
/** A rehearsal with an unknown result is repeated after this time, which is sooner than after a proof. */
const retryMs = 6 * 36e5;
/** For how many intervals a proof is valid. */
const heldIntervals = 2;

/**
 * Probes that prove recoveries: one for each database with backups. It starts a rehearsal when one is due, and reports the result
 * of the last one. One rehearsal runs at a time.
 */
export function planRehearsals(options: RehearsalsOptions, start?: StartRehearsal): ProbeRow[] {
  const { backups = [], stores, stateDirectory = '', recovery } = options;
  const rehearsal = recovery?.rehearsal;
  if (rehearsal === undefined) return [];
  const wanted = recoverables(backups, stores).filter(
    ({ store, database }) =>
      (rehearsal.stores?.includes(store) ?? true) &&
      (rehearsal.databases?.includes(database) ?? true) &&
      database !== '',
  );
  const shared: Shared = { rehearsal, backups, stores, stateDirectory, start, turn: Promise.resolve() };
  return wanted.map((of): ProbeRow => {
    const name = `rehearsal/${of.store}/${of.database}`;
    return {
      name,
      kind: 'rehearsal',
      target: `${of.store} ${of.database}`,
      service: '',
      schedule: { intervalMs, timeoutMs: 10_000 },
      shows: {},
      reasons: rehearsalFailureReasons,
      key: JSON.stringify([rehearsal, backups, stores.find(({ name }) => name === of.store), stateDirectory]),
      open: async (deps) => openRehearsal(of, shared, deps),
    };
  });
}

interface Shared {
  rehearsal: RehearsalOptions;
  backups: readonly BackupOptions[];
  stores: readonly StoreOptions[];
  stateDirectory: string;
  start?: StartRehearsal;
  /** Resolves when no rehearsal is under way. */
  turn: Promise<void>;
}

/** What a probe remembers: since when rehearsals of this database have been configured, ms since the epoch. */
interface Remembered {
  sinceMs: number;
}

async function openRehearsal(of: Recoverable, shared: Shared, deps: ProbeDeps): Promise<Probe> {
  const { clock, latest } = deps;
  const { journalPath, readRuns, recordRun } = await import('../backups/journal.ts');
  const path = journalPath(shared.stateDirectory, 'recovery', drillName('rehearsal', of.store, of.database));
  const closing = new AbortController();
  const events: NonNullable<Finding['events']>[number][] = [];
  let underWay: { ended: Promise<void>; run?: RunningRehearsal } | undefined;
  // Without the findings of other probes, for example in a command, nothing is started and nothing is removed.
  const start = latest && (shared.start ?? (await import('./rehearsal-process.ts')).startRehearsal);
  const { directory } = shared.rehearsal;
  if (start) await start({ clean: true, directory, owner: shared.stateDirectory }, closing.signal).ended;

  const rehearseNow = async (request: RehearsalRequest, backup: string): Promise<void> => {
    const before = shared.turn;
    let done = () => {};
    shared.turn = new Promise((resolve) => {
      done = resolve;
    });
    try {
      await before;
      if (closing.signal.aborted) return;
      const startMs = clock.nowMs();
      const run = start!(request, closing.signal);
      underWay!.run = run;
      const answer = await run.ended;
      if (answer === undefined || closing.signal.aborted) return;
      const record: RehearsalRecord = { ...recordOf(answer, startMs), backup, settings: settingsOf(request) };
      await recordRun(path, record);
      events.push(eventOf(of, record));
    } catch (thrown) {
      events.push({
        level: 'warn',
        msg: 'a rehearsal could not be recorded',
        fields: { ...of, error: errorText(thrown) },
      });
    } finally {
      underWay = undefined;
      done();
    }
  };

  return {
    async check(_, recalled) {
      const nowMs = clock.nowMs();
      const sinceMs = (recalled as Remembered | undefined)?.sinceMs ?? nowMs;
      const records = (await readRuns(path)) as RehearsalRecord[];
      const plan = latest && requestOf(of, shared, latest(`recovery/${of.store}/${of.database}`));
      const last = records.at(-1);
      const request = plan && 'request' in plan ? plan.request : undefined;
      const isDue =
        last === undefined ||
        nowMs >= nextMs(last, shared.rehearsal) ||
        (request !== undefined && isChanged(last, request));
      if (isDue && plan && 'request' in plan && underWay === undefined && !closing.signal.aborted) {
        underWay = { ended: Promise.resolve() };
        underWay.ended = rehearseNow(plan.request, plan.backup);
      }
      const phase = underWay && (underWay.run?.phase() ?? 'waiting');
      return {
        ...findingOf(of, shared, records, {
          nowMs,
          sinceMs,
          phase,
          obstacle: plan && 'msg' in plan ? plan.msg : undefined,
        }),
        events: events.splice(0),
        remember: { sinceMs } satisfies Remembered,
      };
    },
    async close() {
      closing.abort();
      await underWay?.ended;
    },
  };
}

/**
 * The journal record of a rehearsal. Its duration is that of the phases that a recovery would need, too; removing the throwaway
 * server is not one of them.
 */
function recordOf(answer: RehearsalAnswer, startMs: number): RehearsalRecord {
  const { remove: _, ...phasesMs } = answer.phasesMs;
  const tookMs = Object.values(phasesMs).reduce((sum, ms) => sum + ms, 0);
  const status = { ok: 0, failed: 1, unknown: 2 }[answer.result];
  return { startMs, endMs: startMs + tookMs, status, msg: answer.msg, answer };
}

function eventOf(of: Recoverable, { answer, backup, startMs, endMs }: RehearsalRecord) {
  const { result, msg } = answer!;
  return {
    level: result === 'ok' ? ('info' as const) : ('warn' as const),
    msg: result === 'ok' ? 'a recovery was rehearsed' : 'a recovery could not be proven',
    fields: {
      ...of,
      backup,
      durationMs: endMs! - startMs,
      ...(result === 'ok' ? {} : { result, error: msg }),
    },
  };
}

const nextMs = ({ startMs, status }: RehearsalRecord, { everyMs }: RehearsalOptions): number =>
  startMs + (status === 0 ? everyMs : Math.min(everyMs, retryMs));

/** The fingerprint of what the configuration says about a rehearsal, apart from its schedule and the backup. */
const settingsOf = ({ directory, maxBytes, timeoutMs, ...of }: RehearsalRequest): string => {
  const { schemaQuery, schemaVersion, newestRow } = of;
  const settings = [directory, maxBytes, timeoutMs, schemaQuery, schemaVersion, newestRow];
  return createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, 16);
};

/** Whether the configuration has changed since a rehearsal: its result then answers another question. */
const isChanged = ({ settings }: RehearsalRecord, request: RehearsalRequest): boolean =>
  settings !== undefined && settings !== settingsOf(request);

interface ShownLink {
  backup: string;
  type: string;
  what: string;
}

/** What to restore, from the chain that the recovery probe has found; or the reason why nothing can be rehearsed. */
function requestOf(
  { store: storeName, database: role }: Recoverable,
  { rehearsal, backups, stores, stateDirectory }: Shared,
  recovery: Finding | undefined,
): { request: RehearsalRequest; backup: string } | { msg: string } {
  if (recovery === undefined) return { msg: 'the evidence has not been read yet' };
  const links = (recovery.details?.chain as { links?: ShownLink[] } | undefined)?.links ?? [];
  const full = links.find(({ type }) => type === 'full');
  const store = stores.find(({ name }) => name === storeName);
  const database = store?.databases[role as StoreRole];
  if (full === undefined) return { msg: 'there is no verified full backup' };
  if (store === undefined || database === undefined)
    return { msg: `set stores[].databases.${role} of ${storeName}` };
  if (store.kind === 'widecolumn')
    return {
      msg: 'backups of the wide-column store are not rehearsed: a node of it takes too much memory beside the service',
    };
  const sourceOf = (link: ShownLink | undefined) => backups.find(({ name }) => name === link?.backup)?.source;
  const source = sourceOf(full);
  const restore = source?.kind === 'command' ? source.restore : undefined;
  if (source?.kind !== 'files' && restore === undefined)
    return {
      msg: `${full.backup} is not a file on this host; set source.command.restore, or rehearse it by hand`,
    };
  const top = links.findLast(({ type }) => type === 'incremental');
  if (top && restore === undefined) return { msg: 'a chain with incremental backups cannot be rehearsed' };
  const log = links.find(({ type }) => type === 'log');
  const logSource = sourceOf(log);
  if (log && logSource?.kind !== 'segments') return { msg: `${log.backup} is not a directory on this host` };
  return {
    backup: (top ?? full).what,
    request: {
      kind: store.kind,
      ...{ directory: rehearsal.directory, maxBytes: rehearsal.maxBytes, timeoutMs: rehearsal.timeoutMs },
      owner: stateDirectory,
      ...(source?.kind === 'files'
        ? { backup: join(source.directory, full.what) }
        : { backup: (top ?? full).what, restore }),
      ...(log && logSource?.kind === 'segments'
        ? { log: { directory: logSource.directory, last: log.what.split(' to ').at(-1)! } }
        : {}),
      ...{ database, role: role as StoreRole, user: store.user },
      ...{
        schemaQuery: store.schema.query,
        schemaVersion: store.schema[role as StoreRole],
      },
      newestRow: rehearsal.newestRow?.[role as StoreRole],
    },
  };
}

interface Moment {
  nowMs: number;
  sinceMs: number;
  /** The phase of the running rehearsal. */
  phase?: string;
  /** Why no rehearsal can be started. */
  obstacle?: string;
}

function findingOf(
  of: Recoverable,
  { rehearsal, backups }: Shared,
  records: readonly RehearsalRecord[],
  { nowMs, sinceMs, phase, obstacle }: Moment,
): Finding {
  const labels = { store: of.store, database: of.database };
  const last = records.at(-1);
  const success = records.findLast(({ status }) => status === 0);
  const shown = records.findLast(({ status }) => status === 0 || status === 1);
  const heldMs = heldIntervals * rehearsal.everyMs;
  const isHeld = shown?.endMs !== undefined && nowMs - shown.endMs <= heldMs;
  const judged = isHeld ? judgementOf(shown, objectivesOf(of, backups)) : undefined;
  // A rehearsal that was configured only recently is not missing yet.
  const isMissing = judged === undefined && nowMs - sinceMs > heldMs;
  const gauges: Sample[] = [];
  if (judged)
    gauges.push({ name: 'svc_recovery_proven', labels, value: judged.reason === undefined ? 1 : 0 });
  else if (isMissing) gauges.push({ name: 'svc_recovery_proven', labels, value: 0 });
  if (success) {
    const name = 'svc_recovery_rehearsal_last_success_timestamp_seconds';
    gauges.push({ name, labels, value: success.endMs! / 1000 });
  }
  for (const [each, ms] of Object.entries(shown?.answer?.phasesMs ?? {}))
    gauges.push({
      name: 'svc_recovery_rehearsal_duration_seconds',
      labels: { ...labels, phase: each },
      value: ms / 1000,
    });
  const unknown =
    last?.status === 2 ? `it is unknown whether the backup can be restored: ${last.msg}` : obstacle;
  const verdict: Pick<Finding, 'reason' | 'msg'> =
    judged?.reason !== undefined
      ? judged
      : isMissing
        ? {
            reason: 'rehearsal_missing',
            msg: `no rehearsal for ${formatDuration(heldMs)}${unknown ? `; ${unknown}` : ''}`,
          }
        : unknown !== undefined && last?.status === 2
          ? { reason: 'rehearsal_unknown', msg: unknown }
          : { msg: judged?.msg ?? unknown ?? 'no rehearsal yet' };
  return {
    ...verdict,
    msg: phase === undefined ? verdict.msg : `${verdict.msg}; one is under way (${phase})`,
    gauges,
    details: {
      last: last && { ...last.answer, backup: last.backup, startMs: last.startMs, endMs: last.endMs },
      newestRow: shown?.answer?.newestRowMs && new Date(shown.answer.newestRowMs).toISOString(),
      nextMs: last && nextMs(last, rehearsal),
    },
  };
}

function objectivesOf({ store, database }: Recoverable, backups: readonly BackupOptions[]) {
  const own = backups.filter(
    (backup) =>
      backup.type !== 'config' && backup.store === store && (backup.database ?? database) === database,
  );
  return {
    rpoMs: Math.min(...own.map(({ objectives }) => objectives.rpoMs)),
    rtoMs: Math.min(...own.map(({ objectives }) => objectives.rtoMs)),
  };
}

/** Compares the measurements of a rehearsal with the objectives. */
function judgementOf(
  { answer, startMs, endMs, msg }: RehearsalRecord,
  { rpoMs, rtoMs }: { rpoMs: number; rtoMs: number },
): { reason?: RehearsalFailureReason; msg: string } {
  if (answer?.result !== 'ok')
    return { reason: 'rehearsal_failed', msg: `the backup cannot be restored: ${msg}` };
  const tookMs = endMs! - startMs;
  if (tookMs > rtoMs)
    return {
      reason: 'drill_too_slow',
      msg: `the rehearsal took ${formatDuration(tookMs)}; the objective is ${formatDuration(rtoMs)}`,
    };
  const lossMs = answer.newestRowMs === undefined ? undefined : startMs - answer.newestRowMs;
  if (lossMs !== undefined && lossMs > rpoMs)
    return {
      reason: 'recovery_point_too_old',
      msg: `the newest row restored was ${formatDuration(lossMs)} old; the objective is ${formatDuration(rpoMs)}`,
    };
  const loss =
    lossMs === undefined
      ? 'the age of the newest row is unknown; set recovery.rehearsal.newestRow'
      : `the newest row was ${formatDuration(Math.max(0, lossMs))} old`;
  return { msg: `restored in ${formatDuration(tookMs)} with ${answer.workflows} workflows; ${loss}` };
}
