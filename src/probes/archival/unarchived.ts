import type { Readings } from '../../core/ports.ts';
import type { Finding, Probe, ProbeDeps, Sample } from '../probe.ts';
import type { ArchiveTarget } from './archives.ts';

// Counts closed workflows that retention deletes, whether they were archived or not: how many were due since the newest object
// was written, how many are due next, and when. The numbers come from what the roles report as closed, by domain and in slots of
// hours, since the agent began to count.

/** Every outcome with which a workflow closes (spec, Workflow outcomes). */
const closings = [
  'svc_workflow_completed',
  'svc_workflow_failed',
  'svc_workflow_timeout',
  'svc_workflow_canceled',
  'svc_workflow_continued_as_new',
] as const;

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** The retention of a domain whose description shows none (spec, Limits). */
export const defaultRetentionMs = 7 * dayMs;
/** The service archives some time after the retention has elapsed. */
const graceMs = hourMs;
/** The number of domains that are counted separately; all others are counted together. */
const mostDomains = 50;
/** How long a slot is remembered after its retention has elapsed. */
const keptMs = 2 * dayMs;
/** The number of slots in a retention. A retention of 7 days is counted in slots of 4 hours, so that little is remembered. */
const slotsOfRetention = 42;

/** The workflows that closed in one domain; JSON that is remembered across checks and restarts. */
interface ClosedInDomain {
  /** The retention that a check last found, ms. */
  retentionMs: number;
  /** The sum of the domain's counters at the last check. */
  total: number;
  /** The number of closed workflows, by the end of the slot in which they closed, in hours since the epoch. */
  slots: Record<string, number>;
}
type ClosedWorkflows = Record<string, ClosedInDomain>;

/** The closed workflows that retention deletes. */
interface Deletions {
  /**
   * The number of workflows whose retention elapsed after the newest object was written; undefined while that time is not known.
   */
  unarchived?: number;
  /** The number of workflows whose retention elapses within a day. */
  due: number;
  /** When the next retention elapses, ms since the epoch; undefined if no closed workflow is known. */
  nextMs?: number;
}

/** The number of workflows that each domain closed since its counters began. */
function totalsOf(readings: Readings): Map<string, number> {
  const totals = new Map<string, number>();
  for (const family of closings)
    for (const { labels, value } of readings.values(family)) {
      const domain = labels.domain ?? '';
      // A server also counts for all domains together.
      if (!Number.isFinite(value) || value < 0 || domain === 'all') continue;
      totals.set(domain, (totals.get(domain) ?? 0) + value);
    }
  return totals;
}

/** The end of the slot that contains a time, hours since the epoch. */
function slotEnd(retentionMs: number, nowMs: number): number {
  const hours = Math.max(1, Math.ceil(retentionMs / slotsOfRetention / hourMs));
  return (Math.floor(nowMs / hourMs / hours) + 1) * hours;
}

/** Adds the workflows that closed since the last check. Counters that fell began again at 0. */
function countClosed(
  before: ClosedWorkflows,
  readings: Readings,
  retentionMs: (domain: string) => number | undefined,
  nowMs: number,
): ClosedWorkflows {
  const closed: ClosedWorkflows = {};
  const totals = totalsOf(readings);
  const known = [...new Set([...Object.keys(before), ...totals.keys()])].filter((domain) => domain !== '');
  for (const domain of known.slice(mostDomains)) {
    totals.set('', (totals.get('') ?? 0) + (totals.get(domain) ?? 0));
    totals.delete(domain);
  }
  for (const domain of ['', ...known.slice(0, mostDomains)]) {
    const { total: last, slots = {}, retentionMs: known = defaultRetentionMs } = before[domain] ?? {};
    const total = totals.get(domain) ?? last;
    const keepsMs = retentionMs(domain) ?? known;
    if (total === undefined || keepsMs === Number.POSITIVE_INFINITY) continue;
    const oldest = (nowMs - keepsMs - keptMs) / hourMs;
    const kept = Object.fromEntries(Object.entries(slots).filter(([end]) => Number(end) >= oldest));
    // It is not known when the workflows that the first check finds closed, so they do not count.
    const since = last === undefined ? 0 : total < last ? total : total - last;
    const end = slotEnd(keepsMs, nowMs);
    if (since > 0) kept[end] = (kept[end] ?? 0) + since;
    closed[domain] = { retentionMs: keepsMs, total, slots: kept };
  }
  return closed;
}

/**
 * The numbers of deletions. `newestMs` is when the newest object was written: 0 for an archive without objects, undefined if it
 * is not known.
 */
function deletionsOf(closed: ClosedWorkflows, newestMs: number | undefined, nowMs: number): Deletions {
  let [late, due] = [0, 0];
  let nextMs: number | undefined;
  for (const { retentionMs, slots } of Object.values(closed))
    for (const [end, count] of Object.entries(slots)) {
      const endMs = Number(end) * hourMs + retentionMs;
      if (endMs + graceMs <= nowMs) late += newestMs !== undefined && endMs > newestMs ? count : 0;
      else if (endMs > nowMs) {
        if (endMs <= nowMs + dayMs) due += count;
        nextMs = Math.min(nextMs ?? endMs, endMs);
      }
    }
  return { unarchived: newestMs === undefined ? undefined : late, due, nextMs };
}

/**
 * The retention of a domain according to its probe, ms. Undefined if it is not known; infinite if the domain does not archive,
 * because then nothing is lost that should be archived.
 */
function retentionOf(
  latest: NonNullable<ProbeDeps['latest']>,
  { archive, isDefault }: Pick<ArchiveTarget, 'archive' | 'isDefault'>,
) {
  const gaugeOf = (domain: string, name: string, label?: string) =>
    latest(`domain/${domain}`)?.gauges?.find(
      (gauge) => gauge.name === name && (label === undefined || gauge.labels.archive === label),
    )?.value;
  return (domain: string): number | undefined => {
    const seconds = gaugeOf(domain, 'svc_domain_retention_seconds');
    const archives = gaugeOf(domain, 'svc_domain_archival_enabled', archive) ?? Number(isDefault);
    return archives === 0 ? Number.POSITIVE_INFINITY : seconds && seconds * 1000;
  };
}

/**
 * When the newest object was written according to an archive's finding, ms since the epoch; 0 if there is none, undefined if it
 * is not known.
 */
function newestMsOf({ gauges = [], details = {} }: Finding): number | undefined {
  const newest = gauges.find(({ name }) => name === 'svc_archival_newest_object_timestamp_seconds')?.value;
  if (newest !== undefined) return newest * 1000;
  return details.complete === true || details.exists === false ? 0 : undefined;
}

/** The probe of an archive, which also counts the workflows that retention deletes and that are not in the archive. */
export function countingDeletions(
  probe: Probe,
  target: ArchiveTarget,
  { readings, clock, latest = () => undefined }: Pick<ProbeDeps, 'readings' | 'clock' | 'latest'>,
): Probe {
  const { archive, scheme } = target;
  const retentionMs = retentionOf(latest, target);
  let newestMs: number | undefined;
  return {
    ...probe,
    async check(signal, recalled) {
      const { closed = {}, archive: own } = (recalled ?? {}) as {
        closed?: ClosedWorkflows;
        archive?: unknown;
      };
      const finding = await probe.check(signal, own);
      const nowMs = clock.nowMs();
      const counted = countClosed(closed, readings, retentionMs, nowMs);
      // An archive that cannot be reached still has at least what it had.
      newestMs = newestMsOf(finding) ?? newestMs;
      const remember = { closed: counted, archive: finding.remember ?? own };
      if (Object.keys(counted).length === 0) return { ...finding, remember };
      const deletions = deletionsOf(counted, newestMs, nowMs);
      const text = deletionsText(deletions, finding.reason !== undefined);
      return {
        ...finding,
        msg: text ? `${finding.msg}; ${text}` : finding.msg,
        gauges: [...(finding.gauges ?? []), ...gaugesOf(deletions, { archive, scheme })],
        details: { ...finding.details, deletions },
        remember,
      };
    },
  };
}

function gaugesOf({ unarchived, due, nextMs }: Deletions, labels: Sample['labels']): Sample[] {
  return [
    ...(unarchived === undefined
      ? []
      : [{ name: 'svc_archival_unarchived_workflows' as const, labels, value: unarchived }]),
    { name: 'svc_archival_due_workflows', labels, value: due },
    ...(nextMs === undefined
      ? []
      : [{ name: 'svc_archival_next_deletion_timestamp_seconds' as const, labels, value: nextMs / 1000 }]),
  ];
}

/** A text about what is lost, and what will be lost if the archive stays as it is. */
function deletionsText({ unarchived = 0, due, nextMs }: Deletions, isFailing: boolean): string {
  const lost =
    unarchived > 0
      ? `the retention of ${unarchived} closed workflows has elapsed, and the newest object in the archive is older`
      : '';
  const next =
    (isFailing || unarchived > 0) && nextMs !== undefined
      ? `retention deletes the next from ${new Date(nextMs).toISOString()} on, ${due} within 24 hours`
      : '';
  return [lost, next].filter((text) => text !== '').join('; ');
}
