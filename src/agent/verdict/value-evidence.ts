import type { EntriesReport, Evidence, Exceeded, StatusFacts } from '../report.ts';
import { type Found, idOf, type Subjects } from './found.ts';
import { isKind, type KindOfProblem } from './kinds.ts';

type Labels = Exceeded['about'];

/** The subject of a value, and what it is about. */
function subjectOf(kind: KindOfProblem, labels: Labels): { subject: string; about: Subjects } {
  const { role, operation: _, callee, domain, tasklist, source, target, store, database, ...rest } = labels;
  if (rest.queue !== undefined) return { subject: `${rest.queue} of ${role}`, about: { role } };
  if (callee !== undefined) return { subject: `${role} to ${callee}`, about: { role, callee } };
  if (role !== undefined) return { subject: role, about: { role } };
  if (tasklist !== undefined) return { subject: `${domain}/${tasklist}`, about: { domain, tasklist } };
  if (domain !== undefined) return { subject: domain, about: { domain } };
  if (source !== undefined)
    return { subject: `${source} to ${target}`, about: { clusters: [source, target ?? ''] } };
  if (store !== undefined) return { subject: database ? `${store}/${database}` : store, about: { store } };
  if (rest.archive !== undefined) return { subject: rest.archive, about: { archive: rest.archive } };
  if (kind === 'frontend_latency') return { subject: '', about: { callee: 'frontend' } };
  return { subject: rest.backup ?? rest.component ?? rest.family ?? '', about: {} };
}

/** The part of the labels that the subject does not name. */
const partOf = ({ operation, reason }: Labels): string | undefined =>
  operation ?? reason?.replaceAll('_', ' ');

function valueEvidence({ about, value, usual, limit, since }: Exceeded): Evidence {
  const part = partOf(about);
  const known = [usual !== undefined && `usual ${usual}`, `limit ${limit}`].filter(Boolean).join(', ');
  const text = `${part ? `${part}: ` : ''}${value} (${known})`;
  return {
    source: 'value',
    text,
    at: since,
    value,
    usual,
    limit,
  };
}

/** The contradictions between two sources about a role that has errors. */
function conflicts(role: string, { value }: Exceeded, facts: StatusFacts): Evidence[] {
  const health = facts.probes.find(({ name }) => name === `health/${role}`)?.last;
  const stores = facts.probes.filter(({ kind, last }) => kind === 'store' && last?.ok === true);
  const truth = facts.telemetryTruth[role] ?? 1;
  const texts = [
    health?.ok === true && `The health check passes, but ${value.replace(/ its (log|metrics)$/, ' the $1')}`,
    stores.length > 0 && `The agent reaches ${stores[0]!.name}, but persistence calls of the role fail`,
    truth < 0.5 && `The metrics of the role show ${Math.round(truth * 100)} % of the errors in its log`,
  ];
  return texts.flatMap((text): Evidence[] => (text ? [{ source: 'conflict', text }] : []));
}

/** Kinds of problems with a known start, for which the newest errors in the log of the role tell the reason. */
const explainedByLog: ReadonlySet<KindOfProblem> = new Set([
  ...(['role_down', 'role_failing', 'crash_loop', 'fatal', 'scrape_down', 'persistence_errors'] as const),
]);
/** Errors that are older than this are not related to a problem. */
const longestBeforeMs = 600_000;
/**
 * A process that logs a fatal entry ends, and is missed by the next check. If it is missed later, it had been started again.
 */
const longestEndMs = 60_000;

/** The newest entry in the log of a role since shortly before a problem began, or the newest fatal entry if there is one. */
function lastWordOf({ kind, about: { role }, sinceMs }: Found, { lastWords }: EntriesReport): Evidence[] {
  if (!explainedByLog.has(kind)) return [];
  const all = lastWords.find(({ service }) => service === role)?.entries ?? [];
  const entries = all.filter(
    ({ at, level }) => Date.parse(at) >= sinceMs! - (level === 'fatal' ? longestEndMs : longestBeforeMs),
  );
  const entry = entries.find(({ level }) => level === 'fatal') ?? entries[0];
  if (!entry) return [];
  const { workflow, run } = entry;
  const ids = [workflow && `workflow ${workflow}`, run && `run ${run}`].filter(Boolean).join(', ');
  return [{ source: 'log', text: `${entry.level}: ${entry.msg}${ids ? ` (${ids})` : ''}`, at: entry.at }];
}

const msOf = (time: string | undefined): number | undefined =>
  time === undefined ? undefined : Date.parse(time);

/** For each problem, by its id, the sources that have fallen silent, so that nobody knows whether the problem lasts. */
export function silentIn({ exceeded }: StatusFacts): ReadonlyMap<string, readonly string[]> {
  const silent = new Map<string, readonly string[]>();
  for (const { kind, about, silent: sources } of exceeded) {
    if (!sources || !isKind(kind)) continue;
    const id = idOf({ kind, subject: subjectOf(kind, about).subject });
    silent.set(id, [...(silent.get(id) ?? []), ...sources]);
  }
  return silent;
}

/** The problems that values above their limits show, one for each kind and subject. */
export function valueProblems(facts: StatusFacts): Found[] {
  const found = new Map<string, Found & { evidence: Evidence[] }>();
  for (const one of facts.exceeded) {
    if (!isKind(one.kind) || one.silent) continue;
    const { subject, about } = subjectOf(one.kind, one.about);
    const id = idOf({ kind: one.kind, subject });
    const sinceMs = Date.parse(one.since);
    const newSinceMs = msOf(one.newSince);
    const lastMs = msOf(one.lastCounted);
    const quietSinceMs = msOf(one.quietSince);
    const known = found.get(id);
    if (known) {
      known.evidence.push(valueEvidence(one));
      known.from = [...new Set([...known.from!, ...(one.from ?? [])])];
      known.sinceMs = Math.min(known.sinceMs!, sinceMs);
      if (newSinceMs !== undefined) known.newSinceMs = Math.max(known.newSinceMs ?? 0, newSinceMs);
      if (lastMs !== undefined) known.lastMs = Math.max(known.lastMs ?? 0, lastMs);
      // A problem was quiet while none of its counters grew.
      known.quietSinceMs &&= quietSinceMs && Math.max(known.quietSinceMs, quietSinceMs);
      known.onlyGoesOn &&= one.onlyGoesOn;
      continue;
    }
    const { role } = about;
    const contradictions = one.kind === 'persistence_errors' && role ? conflicts(role, one, facts) : [];
    const evidence = [valueEvidence(one), ...contradictions];
    found.set(id, {
      kind: one.kind,
      subject,
      about,
      detail: one.value,
      sinceMs,
      newSinceMs,
      lastMs,
      quietSinceMs,
      evidence,
      from: one.from ?? [],
      onlyGoesOn: one.onlyGoesOn,
    });
  }
  return [...found.values()];
}

/** A fatal entry is counted this much after it was written: the log is read at once, but values are sampled. */
const sampledWithinMs = 20_000;

/** When the first fatal entry that a sample counted was written. */
function writtenMs({ about: { role }, sinceMs }: Found, { lastWords }: EntriesReport): number {
  const entries = lastWords.find(({ service }) => service === role)?.entries ?? [];
  const times = entries.filter(({ level }) => level === 'fatal').map(({ at }) => Date.parse(at));
  return Math.min(sinceMs!, ...times.filter((atMs) => atMs >= sinceMs! - sampledWithinMs));
}

/**
 * Adds the last log entries of its role to a problem, if they tell the reason. A problem of kind `fatal` begins when its first
 * entry was written.
 */
export const withLastWords = (found: Found, { entries }: StatusFacts): Found => ({
  ...found,
  ...(found.kind === 'fatal' && { sinceMs: writtenMs(found, entries) }),
  evidence: [...found.evidence, ...lastWordOf(found, entries)],
});
