import { nearest, usageError } from '../../core/errors.ts';
import { laneOf } from '../../probes/backups/backup-probe.ts';
import type { ProbeRow } from '../../probes/probe.ts';
import { type Probed, probeOnce } from '../../probes/runner/runner.ts';
import { printGrants } from '../../probes/stores/store-grants.ts';
import type { AgentConfig } from '../config/types.ts';
import { onSignals } from '../signals.ts';
import { messageOf } from '../verdict/probe-text.ts';
import { command, configurationOptions, configured } from './arguments.ts';
import { type Io, keepAwake, type Screen, table, wrapped } from './io.ts';
import { openLivePages, probeDeps } from './live-pages.ts';
import { createProbeProgress, type ProbeProgress, planForPerson } from './verification.ts';

const usage = `Usage: svc-agent probe [NAME]... [-c FILE] [--service-config FILE]... [--role ROLE]... [--json]
       svc-agent probe --print-grants [-c FILE] [--service-config FILE]...

Runs every configured probe once, or only the named ones: health/ROLE, store/STORE/DATABASE, cluster/CLUSTER,
domain/DOMAIN, archive/ARCHIVE, backup/BACKUP, recovery/STORE/DATABASE, replication. The beginning of a name selects
all probes that begin with it (store, store/main). The probe of a named backup waits until the backup is verified.
Shows the result and the duration of each phase and, for each failed check, why it matters and what to set.
--print-grants prints the statements that give the agent's user the permissions it needs in each store, and no others.
Exit status: 0 every probe succeeded, and store checks found at most advice; 1 a probe failed, or a store check found
more than advice; 2 wrong usage or an invalid configuration.
`;

const options = { ...configurationOptions, 'print-grants': { type: 'boolean' } } as const;

/** Runs `svc-agent probe`: every probe once, without a running agent. */
export const probe = command({ name: 'probe', usage, options, most: Infinity }, async (values, io, names) => {
  const { config } = await configured(values, io);
  if (values['print-grants']) {
    if (names.length > 0)
      throw usageError('svc-agent probe', 'names with --print-grants', names.join(' '), 'leave them out');
    io.stdout(await printGrants(config.stores));
    if (config.stores.length === 0) io.stderr('Nothing to print: the configuration has no stores.\n');
    return 0;
  }
  const progress = createProbeProgress(io.screen, values.json ? () => {} : io.stdout);
  // If a backup is named, the command waits for its verification, however long that takes.
  const all = planForPerson(config, progress.onVerification, names.length > 0);
  const rows = named(all, names);
  const read = readBefore(rows, all);
  progress.begin([...read, ...rows]);
  const asked = await probeAll([...read, ...rows], config, progress, io);
  const probed = asked.filter(({ row }) => rows.includes(row));
  io.stdout(values.json ? `${JSON.stringify(asJson(probed))}\n` : asText(probed, io));
  const isFault = ({ result }: Probed) => !result.ok || (result.failedChecks ?? []).length > 0;
  return probed.length < rows.length || probed.some(isFault) ? 1 : 0;
});

/**
 * The probes whose findings others of these need, although they were not named: a database is assessed by its backups, and a
 * backup is compared with its store.
 */
function readBefore(rows: readonly ProbeRow[], all: readonly ProbeRow[]): ProbeRow[] {
  const isRead = rows.some(({ kind }) => kind === 'recovery');
  const read = all.filter((row) => isRead && row.kind === 'backup' && !rows.includes(row));
  const lanes = new Set([...read, ...rows].filter(({ kind }) => kind === 'backup').map(({ lane }) => lane));
  const isOfBackup = ({ name }: ProbeRow) => lanes.has(laneOf({ store: name.split('/')[1]! }));
  return [...all.filter((row) => row.kind === 'store' && isOfBackup(row) && !rows.includes(row)), ...read];
}

/**
 * The rows whose names are the given names or begin with them; without names, all rows. Throws `usage` for a name that no row
 * has.
 */
function named(rows: readonly ProbeRow[], names: readonly string[]): readonly ProbeRow[] {
  const isOf = (name: string) => (row: ProbeRow) => row.name === name || row.name.startsWith(`${name}/`);
  for (const name of names) {
    if (rows.some(isOf(name))) continue;
    const near = nearest(
      name,
      rows.map((row) => row.name),
    );
    const known = rows.map((row) => row.name).join(', ');
    const hint = near ? `did you mean ${near}? ` : '';
    const allowed = known === '' ? 'the configuration has nothing to probe' : `${hint}there is ${known}`;
    throw usageError('svc-agent probe', 'unknown probe', name, allowed);
  }
  return names.length === 0 ? rows : rows.filter((row) => names.some((name) => isOf(name)(row)));
}

/**
 * Runs the probes until each has a result or a signal ends it. The metrics of the roles are fetched only if a probe reads them.
 */
async function probeAll(
  rows: readonly ProbeRow[],
  config: AgentConfig,
  progress: ProbeProgress,
  io: Io,
): Promise<Probed[]> {
  const end = new AbortController();
  const undo = onSignals({ stop: () => end.abort(), reload: () => {} });
  const sleep = keepAwake();
  const pages = rows.some(({ kind }) => kind === 'replication') ? await openLivePages(config, io) : [];
  const onResult = (row: ProbeRow) => progress.done(row.name);
  try {
    return await probeOnce(rows, { ...probeDeps(io.env, pages), onResult }, { signal: end.signal });
  } finally {
    progress.clear();
    await Promise.all(pages.map(({ close }) => close()));
    sleep();
    undo();
  }
}

const asJson = (probed: readonly Probed[]) =>
  probed.map(({ row: { name, kind, target }, result: { atMs, ...result } }) => ({
    name,
    kind,
    target,
    at: new Date(atMs).toISOString(),
    ...result,
  }));

function asText(probed: readonly Probed[], { screen }: Io): string {
  if (probed.length === 0)
    return 'Nothing to probe: set health, stores, clusterGroupMetadata, domains or archival.\n';
  return probeTable(probed, screen) + phasesText(probed, screen) + adviceText(probed, screen);
}

/** A table with one line for each probe: what it found, and how long it took. */
function probeTable(probed: readonly Probed[], screen: Screen): string {
  const rows = probed.map(({ row, result }) => [
    row.name,
    result.ok ? 'ok' : (result.reason ?? 'failed'),
    `${Math.round(result.durationMs)} ms`,
    messageOf(result.msg),
    row.target,
  ]);
  return table(['PROBE', 'RESULT', 'TOOK', 'WHAT', 'TARGET'], rows, screen);
}

/** Names of phases for people, for those whose name in the protocol is too short. */
const phaseNames: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  store: { first_byte: 'login' },
};

/** How long each phase of each probe took, in order. The last phase of a failed probe is the phase in which it failed. */
export function phasesText(probed: readonly Probed[], screen: Screen): string {
  const nameWidth = Math.max(0, ...probed.map(({ row }) => row.name.length));
  const ms = (value: number) => (value < 10 ? value.toFixed(1) : String(Math.round(value)));
  const rows = probed.flatMap(({ row, result }) => {
    const phases = Object.entries(result.phasesMs ?? {});
    if (phases.length === 0) return [];
    const names = phaseNames[row.kind] ?? {};
    const shown = phases.map(([name, value]) => `${names[name] ?? name.replace('_', ' ')} ${ms(value)}`);
    const text = shown.join(', ');
    return wrapped(text, (screen.size()?.columns ?? Infinity) - nameWidth - 2).map((line, i) => [
      i === 0 ? row.name : '',
      line,
    ]);
  });
  return rows.length === 0 ? '' : `\n${table(['PHASES', 'ms'], rows, screen)}`;
}

/** A check of a store, as its finding explains it. */
interface Explained {
  check: string;
  holds: boolean | 'unknown';
  found: string;
  /** The owner's reason for accepting that the check fails. */
  accepted?: string;
  why?: string;
  set?: string;
  restart?: string;
}

const checksOf = ({ result }: Probed): readonly Explained[] =>
  (result.details?.checks as readonly Explained[] | undefined) ?? [];

/** The text below the table: the checks of each store that fail or are unknown, why they matter and what to set. */
function adviceText(probed: readonly Probed[], screen: Screen): string {
  const parts = probed.flatMap((one) => {
    const isFailing = ({ holds }: Explained) => holds === false;
    const failing = checksOf(one).filter((check) => isFailing(check) && check.accepted === undefined);
    const accepted = checksOf(one).filter((check) => isFailing(check) && check.accepted !== undefined);
    const unknown = checksOf(one).filter(({ holds }) => holds === 'unknown');
    if (failing.length + unknown.length + accepted.length === 0) return [];
    return [
      '',
      one.row.name,
      ...failing.flatMap(({ check, found, why, set, restart }) => [
        `  ${check} fails: ${found}`,
        ...(why ? [`    ${why}`] : []),
        ...(set ? [`    ${set} (${restart})`] : []),
      ]),
      ...accepted.map(({ check, accepted: reason }) => `  ${check} fails, which is accepted: ${reason}`),
      ...(unknown.length > 0
        ? [
            `  not known: ${unknown.map(({ check, found }) => `${check} (${found})`).join(', ')}`,
            '    where rights are missing, svc-agent probe --print-grants prints them',
          ]
        : []),
    ];
  });
  const columns = screen.size()?.columns ?? Infinity;
  const lines = parts.flatMap((part) => {
    const indent = /^ */.exec(part)![0];
    return wrapped(part.trimStart(), columns - indent.length).map((line) => indent + line);
  });
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}
