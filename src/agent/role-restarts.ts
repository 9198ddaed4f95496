import { agentMetric } from '../core/agent-metrics.ts';
import { AgentError } from '../core/errors.ts';
import type { Counter } from '../core/model.ts';
import type { Clock, Durable, Log, Readings } from '../core/ports.ts';
import type { ProbeFailureReason } from '../core/reasons.ts';
import type { OpenIntake } from '../core/registry/intake.ts';

/** The state of a process according to its health check. `started`: it has just started. */
type ProcessState = 'running' | 'started' | 'down';

const processStates: Partial<Record<ProbeFailureReason, ProcessState>> = {
  refused: 'down',
  shutting_down: 'down',
  warming_up: 'started',
  not_ok: 'running',
  not_in_ring: 'running',
  persistence: 'running',
  http_status: 'running',
  invalid_answer: 'running',
  unimplemented: 'running',
};

/** The state of a process; undefined if the result does not show it, for example after a failure of the network. */
const processStateOf = (reason: ProbeFailureReason | undefined): ProcessState | undefined =>
  reason === undefined ? 'running' : processStates[reason];

/** Whether the process restarted between two states. */
const isRestart = (before: ProcessState | undefined, now: ProcessState): boolean =>
  (before === 'down' && now !== 'down') || (before === 'running' && now === 'started');

/**
 * Whether the counters of two successive pages show a restart, if `fallen` of `counters` are lower on the second. A single
 * counter may fall for other reasons.
 */
const isReset = ({ fallen, counters }: { fallen: number; counters: number }): boolean =>
  fallen > 0 && fallen * 5 >= counters;

/** A value of a page that distinguishes two runs of a process, even across restarts of the agent. */
interface RunMarker {
  family: string;
  value: number;
}

/** The families of run markers, preferred first: start time of the process, number of garbage collections. */
const runMarkerFamilies = ['process_start_time_seconds', 'svc_memory_num_gc'] as const;

function isOtherRun(before: RunMarker | undefined, now: RunMarker | undefined): boolean {
  if (!before || !now || before.family !== now.family) return false;
  return now.family === 'process_start_time_seconds'
    ? now.value > before.value + 1
    : now.value < before.value;
}

/** Kinds of evidence of a restart. Each start-up line is a kind of its own, because a start logs several lines. */
type EvidenceKind = 'health' | 'scrape' | `log ${string}`;

/** The evidence of a short time, which belongs to the same restarts. */
interface Episode {
  lastMs: number;
  counts: Partial<Record<EvidenceKind, number>>;
  /** The number of starts that are not restarts: 1 if the role was unknown before. */
  firstStarts: 0 | 1;
  restarts: number;
}

/** The evidence of one restart arrives within this time: a few intervals of the slowest source. */
const episodeQuietMs = 120_000;

/**
 * Adds a piece of evidence; returns its episode and the number of restarts that it adds. Each kind reports a
 * restart at most once, so an episode has as many restarts as the kind with the most evidence. Two restarts count
 * as one if no single kind has evidence of both. The first start of an unknown role is not a restart.
 */
function foldEvidence(
  before: Episode | undefined,
  kind: EvidenceKind,
  { nowMs, isKnown }: { nowMs: number; isKnown: boolean },
): { episode: Episode; more: number } {
  // The wall clock may have been set back.
  const goesOn = before && Math.abs(nowMs - before.lastMs) <= episodeQuietMs;
  const last: Episode = goesOn
    ? before
    : { lastMs: nowMs, counts: {}, firstStarts: isKnown ? 0 : 1, restarts: 0 };
  const counts = { ...last.counts, [kind]: (last.counts[kind] ?? 0) + 1 };
  const restarts = Math.max(0, ...Object.values(counts).map((count) => count - last.firstStarts));
  return { episode: { ...last, lastMs: nowMs, counts, restarts }, more: restarts - last.restarts };
}

/** The known state of a role; it survives the agent's restarts. */
interface RoleMemory {
  isKnown: boolean;
  processState?: ProcessState;
  runMarker?: RunMarker;
  /** The run marker when a check last found the process running. */
  checkedRun?: RunMarker;
  /** Whether a check said that a running process starts, which the next page must show: a role may warm up without a restart. */
  mayHaveStarted?: boolean;
  episode?: Episode;
}

/** Combines the evidence of health checks, pages and logs into one count of restarts per role. */
export interface Roles {
  /** Counts for these services from now on; `events` opens the durable intake of a service. */
  configure(services: readonly string[], events: (service: string) => OpenIntake): void;
  /** Adds the result of a health check. */
  healthChecked(service: string, reason: ProbeFailureReason | undefined): void;
  /** Adds a complete page. */
  scraped(service: string, page: { fallen: number; counters: number }, readings: Readings): void;
  /** Records that the log has an entry of the service; only the first call counts. */
  logged(service: string): void;
  /** Records that the log has a start-up line. */
  started(service: string, line: string): void;
  readonly durable: Durable;
}

const restarts = agentMetric('svc_role_restarts_total');

const sectionName = 'roles';

function readMemories(section: Uint8Array): Map<string, RoleMemory> {
  try {
    return new Map(Object.entries(JSON.parse(Buffer.from(section).toString()) as Record<string, RoleMemory>));
  } catch (cause) {
    const fault = { where: `state: section ${sectionName}`, what: 'not what this version writes' };
    throw new AgentError('state_unreadable', fault, cause);
  }
}

function runMarkerIn(readings: Readings): RunMarker | undefined {
  for (const family of runMarkerFamilies) {
    for (const { value } of readings.values(family)) return { family, value };
  }
  return undefined;
}

export function createRoles({ clock, log }: { clock: Clock; log: Log }): Roles {
  let memories = new Map<string, RoleMemory>();
  let counters = new Map<string, Counter>();
  const declared = new WeakSet<OpenIntake>();
  /** Roles whose page this process has seen: from then on, two pages show whether counters fell. */
  const seenPages = new Set<string>();

  const memoryOf = (service: string): RoleMemory => {
    const known = memories.get(service) ?? { isKnown: false };
    memories.set(service, known);
    return known;
  };
  const addEvidence = (service: string, kind: EvidenceKind) => {
    const memory = memoryOf(service);
    const { episode, more } = foldEvidence(memory.episode, kind, {
      nowMs: clock.nowMs(),
      isKnown: memory.isKnown,
    });
    memory.episode = episode;
    memory.isKnown = true;
    if (more === 0) return;
    counters.get(service)?.add(more);
    log.write('warn', 'role restarted', { service, evidence: kind });
  };

  return {
    configure(services, events) {
      const before = counters;
      counters = new Map(
        services.map((service) => {
          const intake = events(service);
          const { kind, name, help } = restarts;
          if (!declared.has(intake)) intake.restore(kind, name, { help, tags: ['svc_service'] });
          declared.add(intake);
          return [service, intake.counter(name, {}, { help })];
        }),
      );
      // The old counters are closed after the new ones are open, so that series that both have continue. A removed series stays
      // in the state.
      for (const [service, counter] of before) if (counters.has(service)) counter.release();
    },
    healthChecked(service, reason) {
      const state = processStateOf(reason);
      if (!state) return;
      const memory = memoryOf(service);
      const isDoubtful = memory.processState === 'running' && memory.checkedRun !== undefined;
      if (isRestart(memory.processState, state)) {
        if (isDoubtful) memory.mayHaveStarted = true;
        else addEvidence(service, 'health');
      }
      if (state === 'running') memory.checkedRun = memory.runMarker;
      memory.processState = state;
      if (state !== 'down') memory.isKnown = true;
    },
    scraped(service, page, readings) {
      const memory = memoryOf(service);
      const runMarker = runMarkerIn(readings);
      const isFirst = !seenPages.has(service);
      seenPages.add(service);
      if (isReset(page) || (isFirst && isOtherRun(memory.runMarker, runMarker)))
        addEvidence(service, 'scrape');
      if (memory.mayHaveStarted && isOtherRun(memory.checkedRun, runMarker)) addEvidence(service, 'health');
      memory.mayHaveStarted = undefined;
      memory.runMarker = runMarker;
      memory.isKnown = true;
    },
    logged(service) {
      memoryOf(service).isKnown = true;
    },
    started: (service, line) => addEvidence(service, `log ${line}`),
    durable: {
      name: sectionName,
      freeze: () => Buffer.from(JSON.stringify(Object.fromEntries(memories))),
      restore(section) {
        memories = readMemories(section);
      },
    },
  };
}
