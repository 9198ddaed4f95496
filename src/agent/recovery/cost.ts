import { type RecoveryProcedure, recoveryProcedures } from '../../core/reasons.ts';
import { formatDuration } from '../../core/text-formats.ts';

/** A probe's last result, as in `/api/status`. */
export interface KnownProbe {
  name: string;
  msg: string;
  details: Readonly<Record<string, unknown>>;
}

export interface CostFacts {
  nowMs: number;
  probes: readonly KnownProbe[];
  /** Domains with the cluster in which each is active; `clusters` are all clusters of the group. */
  domains: readonly { domain: string; activeCluster?: string | undefined }[];
  clusters: readonly string[];
  /** Lag between two clusters, if it is known. */
  replication: readonly { source: string; target: string; lagSeconds: number }[];
  /** The number of workflows that start per second, or the reason why it is not known. */
  workflowRate: number | string;
  /** The duration of the newest drill of a procedure for a database or a domain, ms. */
  drillMs(procedure: RecoveryProcedure, subject: string): number | undefined;
}

/** What one procedure would cost now. Missing values are not known: `unknown` says what would make them known. */
export interface Cost {
  procedure: RecoveryProcedure;
  /** `STORE/DATABASE`, or the domain and the cluster to which it would move: `orders to dc2`. */
  subject: string;
  timeSeconds?: number;
  /** The measurement that the time is based on. */
  basis?: string;
  lossSeconds?: number;
  lossWorkflows?: number;
  unknown: readonly string[];
}

interface Rehearsed {
  startMs: number;
  endMs: number;
  result: string;
  backupBytes?: number;
  phasesMs: Readonly<Record<string, number>>;
}

interface Chain {
  recoveryPoint: string;
  links: readonly { backup: string; type: string }[];
}

/** What each procedure would cost if it began now, for each database and each domain. */
export function costsOf(facts: CostFacts): Cost[] {
  const databases = facts.probes.filter(({ name }) => name.startsWith('recovery/'));
  return recoveryProcedures.flatMap((procedure) =>
    procedure === 'database-corruption' || procedure === 'cluster-loss'
      ? databases.map((probe) => restoreCost(procedure, probe, facts))
      : facts.domains.flatMap((domain) => failoverCosts(procedure, domain, facts)),
  );
}

type Known<T> = Partial<T> & { unknown: readonly string[] };

function restoreCost(procedure: RecoveryProcedure, recovery: KnownProbe, facts: CostFacts): Cost {
  const subject = recovery.name.slice('recovery/'.length);
  const { unknown: ofTime, ...time } = restoreTime(procedure, subject, recovery, facts);
  const chain = recovery.details.chain as Chain | undefined;
  const lossSeconds = chain && Math.max(0, facts.nowMs - Date.parse(chain.recoveryPoint)) / 1000;
  const { unknown: ofLoss, ...loss } = lossOf(lossSeconds, `the recovery point: ${recovery.msg}`, facts);
  return { procedure, subject, ...time, ...loss, unknown: [...ofTime, ...ofLoss] };
}

/** The time of a restore. A drill of the procedure itself includes everything; a rehearsal includes only the restore. */
function restoreTime(
  procedure: RecoveryProcedure,
  subject: string,
  recovery: KnownProbe,
  { nowMs, probes, drillMs }: CostFacts,
): Known<Pick<Cost, 'timeSeconds' | 'basis'>> {
  const drilledMs = drillMs(procedure, subject);
  if (drilledMs !== undefined)
    return { timeSeconds: drilledMs / 1000, basis: 'the last drill of this procedure', unknown: [] };
  const probe = probes.find(({ name }) => name === `rehearsal/${subject}`);
  const last = probe?.details.last as Rehearsed | undefined;
  if (last?.result !== 'ok') {
    const how = probe === undefined ? 'set recovery.rehearsal, or run a drill' : probe.msg;
    return { unknown: [`the time: the restore has never been rehearsed; ${how}`] };
  }
  const bytes = bytesNow(recovery, probes);
  const share = bytes === undefined || !last.backupBytes ? 1 : bytes / last.backupBytes;
  const ms = Object.entries(last.phasesMs).map(([phase, tookMs]) => {
    if (phase === 'remove') return 0;
    // Creating a server and replaying the log do not depend on the size of the backup.
    return phase === 'create' || phase === 'log' ? tookMs : tookMs * share;
  });
  const size = share === 1 ? '' : `, for a backup of ${share.toFixed(2)} times the size`;
  const ago = formatDuration(nowMs - last.startMs);
  return {
    timeSeconds: ms.reduce((sum, one) => sum + one, 0) / 1000,
    basis: `the restore alone, as rehearsed ${ago} ago${size}`,
    unknown: [],
  };
}

/** The size of the newest backup with which the chain begins. */
function bytesNow({ details }: KnownProbe, probes: readonly KnownProbe[]): number | undefined {
  const full = (details.chain as Chain | undefined)?.links.find(({ type }) => type === 'full');
  const backup = probes.find(({ name }) => name === `backup/${full?.backup}`);
  return (backup?.details.newest as { bytes?: number } | undefined)?.bytes;
}

function lossOf(
  lossSeconds: number | undefined,
  why: string,
  { workflowRate }: CostFacts,
): Known<Pick<Cost, 'lossSeconds' | 'lossWorkflows'>> {
  if (lossSeconds === undefined) return { unknown: [why] };
  if (typeof workflowRate === 'string')
    return { lossSeconds, unknown: [`the number of workflows: ${workflowRate}`] };
  return { lossSeconds, lossWorkflows: Math.ceil(lossSeconds * workflowRate), unknown: [] };
}

function failoverCosts(
  procedure: RecoveryProcedure,
  { domain, activeCluster }: CostFacts['domains'][number],
  facts: CostFacts,
): Cost[] {
  if (activeCluster === undefined) {
    const unknown = [
      `the time and the data: it is not known where ${domain} is active; set domains.describe`,
    ];
    return [{ procedure, subject: domain, unknown }];
  }
  return facts.clusters
    .filter((cluster) => cluster !== activeCluster)
    .map((to): Cost => {
      const lag = facts.replication.find(({ source, target }) => source === activeCluster && target === to);
      const { unknown: ofLoss, ...loss } = lossOf(
        lag?.lagSeconds,
        `the data: the replication lag from ${activeCluster} to ${to}; scrape the history role of ${to}`,
        facts,
      );
      const drilledMs = facts.drillMs(procedure, domain);
      return {
        procedure,
        subject: `${domain} to ${to}`,
        ...(drilledMs === undefined
          ? {}
          : { timeSeconds: drilledMs / 1000, basis: 'the last drill of this procedure' }),
        ...loss,
        unknown: [
          ...(drilledMs === undefined ? [`the time: run a drill of ${procedure} for ${domain}`] : []),
          ...ofLoss,
        ],
      };
    });
}
