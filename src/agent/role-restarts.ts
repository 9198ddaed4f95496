import { agentMetric } from '../core/agent-metrics.ts';
import { AgentError } from '../core/errors.ts';
import type { OpenIntake } from '../core/intake.ts';
import type { Counter } from '../core/model.ts';
import type { Clock, Durable, Log, Readings } from '../core/ports.ts';
import type { ProbeFailureReason } from '../core/reasons.ts';

/** Whether a process answers, as a health check tells; `fresh`: it says that it has just begun. */
export type Life = 'there' | 'fresh' | 'away';

const lives: Partial<Record<ProbeFailureReason, Life>> = {
  refused: 'away',
  shutting_down: 'away',
  warming_up: 'fresh',
  not_ok: 'there',
  not_in_ring: 'there',
  persistence: 'there',
  http_status: 'there',
  invalid_answer: 'there',
  unimplemented: 'there',
};

/** Undefined where the result says nothing of the process: a path that is broken is no restart. */
const lifeOf = (reason: ProbeFailureReason | undefined): Life | undefined =>
  reason === undefined ? 'there' : lives[reason];

/** Whether a process that was `before` and is `now` began in between. */
const isBirth = (before: Life | undefined, now: Life): boolean =>
  (before === 'away' && now !== 'away') || (before === 'there' && now === 'fresh');

/** Of `counters` on two pages in a row `fallen` fell. A single series may fall for its own reasons, a share may not. */
const isReset = ({ fallen, counters }: { fallen: number; counters: number }): boolean =>
  fallen > 0 && fallen * 5 >= counters;

/** A number of a page by which two lives of a process are told apart, across the agent's own restarts. */
interface Witness {
  family: string;
  value: number;
}

/** In the order of how much they tell: when the process began, how often it collected garbage. */
const witnessFamilies = ['process_start_time_seconds', 'svc_memory_num_gc'] as const;

function isOtherLife(before: Witness | undefined, now: Witness | undefined): boolean {
  if (!before || !now || before.family !== now.family) return false;
  return now.family === 'process_start_time_seconds'
    ? now.value > before.value + 1
    : now.value < before.value;
}

/** What tells of a restart; each start-up line of the log is a kind of its own: a start writes several. */
type EvidenceKind = 'health' | 'scrape' | `log ${string}`;

/** Evidence that came close together. */
interface Episode {
  lastMs: number;
  counts: Partial<Record<EvidenceKind, number>>;
  /** Starts that are no restarts: 1 if the role was seen for the first time. */
  firstStarts: 0 | 1;
  restarts: number;
}

/** Evidence of one restart comes within this: a few intervals of the slowest source. */
const episodeQuietMs = 120_000;

/**
 * Takes one piece of evidence; returns the episode it belongs to and how many restarts it adds. Each kind sees a
 * restart at most once, so an episode has had as many as the kind that saw most: of two that no single kind saw
 * both, one is lost. The first start of a role that nobody knew is none.
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

/** What is known of a role; it survives the agent's restarts. */
interface Memory {
  isKnown: boolean;
  life?: Life;
  witness?: Witness;
  episode?: Episode;
}

/** Folds what health checks, pages and logs tell of restarts into one count per role (DESIGN §2). */
export interface Roles {
  /** Counts for these services from now on; `events` opens the durable intake of one. */
  configure(services: readonly string[], events: (service: string) => OpenIntake): void;
  /** A health check came out. */
  healthChecked(service: string, reason: ProbeFailureReason | undefined): void;
  /** A page was taken whole. */
  scraped(service: string, page: { fallen: number; counters: number }, readings: Readings): void;
  /** The log has an entry of the service; once is enough. */
  logged(service: string): void;
  /** The log has a line that a start writes. */
  started(service: string, line: string): void;
  readonly durable: Durable;
}

const restarts = agentMetric('svc_role_restarts_total');

const sectionName = 'roles';

function readMemories(section: Uint8Array): Map<string, Memory> {
  try {
    return new Map(Object.entries(JSON.parse(Buffer.from(section).toString()) as Record<string, Memory>));
  } catch (cause) {
    const fault = { where: `state: section ${sectionName}`, what: 'not what this version writes' };
    throw new AgentError('state_unreadable', fault, cause);
  }
}

function witnessIn(readings: Readings): Witness | undefined {
  for (const family of witnessFamilies) {
    for (const { value } of readings.values(family)) return { family, value };
  }
  return undefined;
}

export function createRoles({ clock, log }: { clock: Clock; log: Log }): Roles {
  let memories = new Map<string, Memory>();
  let counters = new Map<string, Counter>();
  const declared = new WeakSet<OpenIntake>();
  /** Roles whose page was seen by this process: what falls later is told by the page itself. */
  const seenPages = new Set<string>();

  const memoryOf = (service: string): Memory => {
    const known = memories.get(service) ?? { isKnown: false };
    memories.set(service, known);
    return known;
  };
  const hear = (service: string, kind: EvidenceKind) => {
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
      // After the new ones are open: what both have goes on. One that left stays in the state.
      for (const [service, counter] of before) if (counters.has(service)) counter.release();
    },
    healthChecked(service, reason) {
      const life = lifeOf(reason);
      if (!life) return;
      const memory = memoryOf(service);
      if (isBirth(memory.life, life)) hear(service, 'health');
      memory.life = life;
      if (life !== 'away') memory.isKnown = true;
    },
    scraped(service, page, readings) {
      const memory = memoryOf(service);
      const witness = witnessIn(readings);
      const isFirst = !seenPages.has(service);
      seenPages.add(service);
      if (isReset(page) || (isFirst && isOtherLife(memory.witness, witness))) hear(service, 'scrape');
      memory.witness = witness;
      memory.isKnown = true;
    },
    logged(service) {
      memoryOf(service).isKnown = true;
    },
    started: (service, line) => hear(service, `log ${line}`),
    durable: {
      name: sectionName,
      freeze: () => Buffer.from(JSON.stringify(Object.fromEntries(memories))),
      restore(section) {
        memories = readMemories(section);
      },
    },
  };
}
