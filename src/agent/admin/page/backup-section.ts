import type { ProbeStatus, StatusReport } from '../../report.ts';
import { subjectOf } from '../../verdict/probe-text.ts';
import type { Data } from './data.ts';
import { type Child, h, table } from './dom.ts';
import { ago, bytes, moment, seconds, span } from './format.ts';
import { type Frame, folded, meter, pill, section, type Tone } from './parts.ts';
import { openRunbook } from './runbook.ts';
import { failureText, probesOf, stateOf } from './targets.ts';

interface ShownChain {
  recoveryPoint: string;
  links: readonly { backup: string; type: string; what: string; to: string }[];
}
interface ShownDrill {
  procedure: string;
  endMs: number;
  durationMs: number;
}
/** What the probe of a rehearsal reports about the last rehearsal. */
interface ShownRehearsal {
  backup?: string;
  startMs: number;
  endMs: number;
  workflows?: number;
  newestRowMs?: number;
  phasesMs?: Readonly<Record<string, number>>;
}
type BackupStatus = StatusReport['backups'][number];

const recoveryHead = [
  'Database',
  'Recovery',
  'Data loss against objective',
  'Restore time against objective',
  'Evidence',
];
const rehearsalHead = [
  'Rehearsal',
  'Recovery',
  'Restore time against objective',
  'Newest row',
  'Last rehearsal',
];
const backupHead = ['Backup', 'State', 'Age against objective', 'Integrity', 'Size', 'Off-site', 'Retention'];

/** Up to this many rows are shown outside of a fold. If there are more, only the first two and the failing rows are. */
const mostRows = 6;
const mostOfMany = 2;

/** A table of probes; failing probes come first. */
function tableOf<T>(
  name: string,
  head: readonly string[],
  all: readonly T[],
  { probeOf, row }: { probeOf(one: T): ProbeStatus | undefined; row(one: T): Parameters<typeof table>[2][0] },
): Child {
  const isWrong = (one: T) => probeOf(one)?.last?.ok === false;
  const inOrder = [...all].sort((one, other) => Number(isWrong(other)) - Number(isWrong(one)));
  const most = all.length > mostRows ? mostOfMany : mostRows;
  return folded({ key: `more ${name}`, most, isWrong }, inOrder, (part, isRest) =>
    table(isRest ? `More: ${name}` : name, head, part.map(row)),
  );
}

/** The section that compares objectives with evidence: what can be recovered, each backup, and the archives. */
export function backups(_data: Data, report: StatusReport, { nowMs }: Frame): Child {
  const recovery = probesOf(report, 'recovery');
  const probes = new Map(probesOf(report, 'backup').map((probe) => [subjectOf(probe), probe]));
  const archives = probesOf(report, 'archive');
  const rehearsals = probesOf(report, 'rehearsal');
  if (recovery.length + report.backups.length + archives.length === 0) return undefined;
  const itself = (probe: ProbeStatus) => probe;
  const probeOf = ({ backup }: BackupStatus) => probes.get(backup);
  const aside = h(
    'div',
    { class: 'links' },
    runbookLink('database-corruption', 'Recover a database'),
    runbookLink('datacenter-failure', 'Survive the loss of a datacenter'),
  );
  return section(
    { id: 'backups', title: 'Backups and recovery', wide: true, aside },
    tableOf('Recovery readiness', recoveryHead, recovery, {
      probeOf: itself,
      row: (probe) => recoveryRow(probe, report.backups, nowMs),
    }),
    tableOf('Rehearsals', rehearsalHead, rehearsals, {
      probeOf: itself,
      row: (probe) => rehearsalRow(probe, report.backups, nowMs),
    }),
    tableOf('Backups', backupHead, report.backups, {
      probeOf,
      row: (one) => backupRow(one, probeOf(one), nowMs),
    }),
    folded({ key: 'archives', most: 6 }, archives, (part) =>
      h('ul', { class: 'targets' }, part.map(archiveItem)),
    ),
  );
}

/** A running verification: its progress, its rate and the time left. */
function verification({
  doneBytes,
  totalBytes,
  bytesPerSecond,
}: NonNullable<ProbeStatus['progress']>): Child {
  const share = doneBytes / totalBytes;
  const leftSeconds = (totalBytes - doneBytes) / bytesPerSecond;
  const isKnown = totalBytes > 0 && bytesPerSecond > 0;
  return [
    isKnown ? meter(share, `verifying, ${Math.floor(share * 100)} %`) : 'verifying',
    h(
      'div',
      { class: 'muted small' },
      totalBytes > 0 ? `${bytes(doneBytes)} of ${bytes(totalBytes)}` : bytes(doneBytes),
      isKnown && `, ${bytes(bytesPerSecond)}/s, ${span(leftSeconds)} left`,
    ),
  ];
}

const runbookLink = (name: string, text: string) =>
  h('button', { type: 'button', class: 'plain', click: () => void openRunbook(`recovery/${name}`) }, text);

function recoveryRow(probe: ProbeStatus, all: readonly BackupStatus[], nowMs: number) {
  const { chain, drill } = (probe.last?.details ?? {}) as { chain?: ShownChain; drill?: ShownDrill };
  const own = backupsOf(probe, all);
  const lossSeconds = chain && (nowMs - Date.parse(chain.recoveryPoint)) / 1e3;
  const drillSeconds = drill && drill.durationMs / 1e3;
  return {
    key: probe.name,
    cells: [
      [h('strong', {}, subjectOf(probe)), probe.last && h('div', { class: 'muted small' }, probe.last.msg)],
      pill(...outcome(probe, 'ready', 'not ready')),
      againstObjective(lossSeconds, tightest(own.map(({ rpoSeconds }) => rpoSeconds)), 'no verified backup'),
      [
        againstObjective(drillSeconds, tightest(own.map(({ rtoSeconds }) => rtoSeconds)), 'no drill yet'),
        drill &&
          h('div', { class: 'muted small' }, `drill ${ago(new Date(drill.endMs).toISOString(), nowMs)}`),
      ],
      chain ? chainSteps(probe.name, chain, nowMs) : '–',
    ],
  };
}

/** The backups of the database that a probe is about. */
function backupsOf(probe: ProbeStatus, all: readonly BackupStatus[]): readonly BackupStatus[] {
  const [store, database] = subjectOf(probe).split('/');
  return all.filter(
    (one) =>
      one.store === store &&
      (one.database === undefined || one.database === database) &&
      one.type !== 'config',
  );
}

function rehearsalRow(probe: ProbeStatus, all: readonly BackupStatus[], nowMs: number) {
  const { last } = (probe.last?.details ?? {}) as { last?: ShownRehearsal };
  const objective = tightest(backupsOf(probe, all).map(({ rtoSeconds }) => rtoSeconds));
  const phases = Object.entries(last?.phasesMs ?? {}).map(([name, ms]) => `${name} ${seconds(ms / 1e3)}`);
  return {
    key: probe.name,
    cells: [
      [h('strong', {}, subjectOf(probe)), probe.last && h('div', { class: 'muted small' }, probe.last.msg)],
      last ? pill(...outcome(probe, 'proven', 'not proven')) : pill('quiet', 'not rehearsed yet'),
      [
        againstObjective(last && (last.endMs - last.startMs) / 1e3, objective, 'no rehearsal yet'),
        phases.length > 0 && h('div', { class: 'muted small' }, phases.join(', ')),
      ],
      last?.newestRowMs === undefined
        ? 'unknown'
        : `${span(Math.max(0, last.startMs - last.newestRowMs) / 1e3)} old`,
      last
        ? [
            ago(new Date(last.startMs).toISOString(), nowMs),
            last.backup && h('div', { class: 'muted small' }, last.backup),
          ]
        : '–',
    ],
  };
}

const tightest = (values: readonly number[]) => (values.length > 0 ? Math.min(...values) : undefined);

function outcome(probe: ProbeStatus | undefined, good: string, bad: string): [Tone, string] {
  if (!probe?.last) return ['quiet', 'not checked yet'];
  return probe.last.ok ? ['good', good] : ['bad', bad];
}

/** A duration as a share of what its objective allows; `none` if there is no such duration. */
function againstObjective(actual: number | undefined, objective: number | undefined, none: string): Child {
  if (actual !== undefined && objective !== undefined)
    return meter(
      actual / objective,
      `${span(actual)} of ${span(objective)}`,
      actual > objective ? 'bad' : 'good',
    );
  return [none, objective !== undefined && h('div', { class: 'muted small' }, `at most ${span(objective)}`)];
}

/** The artifacts that a recovery would restore, in order. */
function chainSteps(name: string, { links }: ShownChain, nowMs: number): HTMLElement {
  const steps = links.map(({ backup, type, what, to }) =>
    h('li', {}, h('strong', {}, backup), ` ${type}: ${what}, to ${moment(to, nowMs)}`),
  );
  return h(
    'details',
    { key: `chain ${name}`, class: 'more' },
    h('summary', {}, `${links.length} ${links.length === 1 ? 'step' : 'steps'}`),
    h('ol', { class: 'plainlist' }, steps),
  );
}

function backupRow(one: BackupStatus, probe: ProbeStatus | undefined, nowMs: number) {
  const reason = (probe?.last?.reason ?? 'failed').replaceAll('_', ' ');
  const newest = one.recoveryPoint ?? one.lastSuccess;
  return {
    key: one.backup,
    cells: [
      [
        h('strong', {}, one.backup),
        h('div', { class: 'muted small' }, [one.type, one.store, one.database].filter(Boolean).join(' · ')),
      ],
      [
        pill(...outcome(probe, 'good', reason)),
        probe?.last && !probe.last.ok && h('div', { class: 'reason' }, probe.last.msg),
      ],
      newest === undefined
        ? 'none'
        : againstObjective((nowMs - Date.parse(newest)) / 1e3, one.rpoSeconds, 'none'),
      probe?.progress
        ? verification(probe.progress)
        : flag(one.integrityOk, 'not verified', ['good', 'verified'], ['bad', 'corrupt']),
      [
        one.bytes === undefined ? '–' : bytes(one.bytes),
        one.durationSeconds !== undefined &&
          h('div', { class: 'muted small' }, `in ${seconds(one.durationSeconds)}`),
      ],
      one.offsite === undefined ? '–' : ago(one.offsite, nowMs),
      flag(one.retentionKept, '–', ['good', 'kept'], ['warn', 'broken']),
    ],
  };
}

type PillState = readonly [Tone, string];

const flag = (
  value: boolean | undefined,
  unknown: string,
  whenTrue: PillState,
  whenFalse: PillState,
): Child => (value === undefined ? unknown : pill(...(value ? whenTrue : whenFalse)));

const archiveItem = (probe: ProbeStatus) =>
  h(
    'li',
    { key: probe.name, class: 'target' },
    h(
      'div',
      { class: 'line' },
      h('h3', {}, `Archive ${subjectOf(probe)}`),
      pill(...stateOf(probe)),
      h('span', { class: 'muted' }, probe.last?.ok ? probe.last.msg : ''),
    ),
    failureText(probe),
  );
