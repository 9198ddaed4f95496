import { describe, expect, test } from 'vitest';
import type { Rows } from '../../../src/agent/verdict/collected.ts';
import { createServiceReadings } from '../../../src/agent/verdict/readings.ts';
import { createJudge } from '../../../src/agent/verdict/verdict.ts';
import { type PlayedRole, playRole } from '../../played-pages.ts';
import { rawPage } from '../../recorded-pages.ts';
import { probeStatusOf, statusFactsOf } from '../../status-report.ts';

/**
 * The pages of a real service, played back through scrape, vocabulary, registry and verdict. Every counter grows by a hundredth
 * of its recorded value in a step, so the mix of calls, answers and outcomes is the recorded one. A fault changes lines of the
 * pages; the first sentence must name it.
 */

const roles = ['frontend', 'history', 'matching', 'worker'] as const;
type Role = (typeof roles)[number];
const stepMs = 15_000;
const startMs = Date.parse('2026-03-01T08:00:00.000Z');

/** Matches what the verdict may read; the rest of the pages is long. */
const wanted =
  /^(?:cadence_(?:requests|errors|client_requests|client_errors)|workflow_|poll_success_per_tl|poll_timeouts_per_tl|poller_count_per_tl|task_backlog_per_tl|persistence_(?:requests|errors)|task_latency_queue(?:_bucket|_count|_sum| histogram)|memory_|restarts|build_information|shard)/;
const gauges = /^(?:memory_(?!num_gc|gc)|poller_count|task_backlog|build_information)/;

interface Line {
  series: string;
  value: number;
}
const kept = Object.fromEntries(
  roles.map((role) => [
    role,
    rawPage(role)
      .split('\n')
      .filter((line) => wanted.test(line.replace(/^# TYPE /, '')))
      .filter((line) => !/rollup|redirection|operation="Timer/.test(line))
      .map((line): Line => {
        if (line.startsWith('#')) return { series: line, value: Number.NaN };
        const at = line.lastIndexOf(' ');
        return { series: line.slice(0, at), value: Number(line.slice(at + 1)) };
      }),
  ]),
) as Record<Role, Line[]>;
/** What was wrong while the pages were recorded: a list that nobody polled, and a load generator whose workflows timed out. */
const isOrphaned = ({ series }: Line) => /nobody_polls|^workflow_timeout\{/.test(series);

/** Changes a line at a step after the fault; undefined leaves it out. */
type Change = (line: Line, role: Role, step: number) => number | undefined;
interface Fault {
  change?: Change;
  /** Lines that are there from the fault on, by role. */
  adds?: (step: number) => Partial<Record<Role, readonly string[]>>;
  hasOrphans?: true;
  says: RegExp;
  steps?: number;
}

const grown = ({ series, value }: Line, step: number): number =>
  gauges.test(series) ? value : value * (1 + step / 100);

async function played({ change, adds, hasOrphans, steps = 24 }: Omit<Fault, 'says'>) {
  const pages = new Map<Role, PlayedRole>();
  for (const role of roles) {
    pages.set(role, await playRole(role));
  }
  const readings = createServiceReadings();
  const judge = createJudge();
  const faultAt = 20;
  const sentences: string[] = [];
  for (let step = 0; step < faultAt + steps; step++) {
    for (const [role, page] of pages) {
      const lines = kept[role].filter((line) => hasOrphans || !isOrphaned(line));
      const after = step - faultAt;
      const values = lines.flatMap((line) => {
        const value = after >= 0 && change ? change(line, role, step) : grown(line, step);
        if (line.series.startsWith('#')) return [line.series];
        return value === undefined ? [] : [`${line.series} ${value}`];
      });
      const added = after >= 0 ? (adds?.(after)[role] ?? []) : [];
      await page.page(`${[...values, ...added].join('\n')}\n`);
    }
    const nowMs = startMs + step * stepMs;
    const sample = (left: readonly PlayedRole[], all: readonly Rows[]): void => {
      const [first, ...rest] = left;
      if (first) first.read((rows) => sample(rest, [...all, rows]));
      else
        readings.sample((family) => all.flatMap((rows) => [...rows(family)]), {
          nowMs,
          monotonicMs: step * stepMs,
        });
    };
    sample([...pages.values()], []);
    const at = new Date(nowMs).toISOString();
    const probes = roles.map((role) => probeStatusOf(`health/${role}`, { at }, { since: at }));
    const facts = { now: at, startedAt: new Date(startMs - 3_600_000).toISOString(), probes };
    sentences.push(judge.judge(statusFactsOf({ ...facts, ...readings.report() }), nowMs).verdict.sentence);
  }
  return { before: sentences[faultAt - 1]!, after: sentences.at(-1)! };
}

const of = (pattern: RegExp, value: (grownValue: number, line: Line, step: number) => number | undefined) =>
  ((line, _, step) =>
    pattern.test(line.series) ? value(grown(line, step), line, step) : grown(line, step)) satisfies Change;

const faults: Readonly<Record<string, Fault>> = {
  'nobody polls a list, as recorded': {
    hasOrphans: true,
    says: /^Task list cadence_bench\/nobody_polls has tasks but no poller \(since /,
  },
  'all workflows of a domain time out': {
    change: of(/^workflow_success\{.*domain="cadence_bench"/, (_, line) => grown(line, 20)),
    adds: (after) => ({
      history: [
        `workflow_timeout{cadence_service="cadence_history",domain="cadence_bench",workflowType="late"} ${after * 30}`,
      ],
    }),
    says: /^Workflows of domain cadence_bench time out \(since /,
  },
  'workflows of a domain fail': {
    change: of(/^workflow_failed\{/, (own, _, step) => own * (1 + (step - 20) / 2)),
    says: /^Workflows of domain cadence_bench fail \(since /,
  },
  'the canary stands still': {
    change: of(/^workflow_\w+\{.*domain="cadence_canary"/, (_, line) => grown(line, 20)),
    steps: 66,
    says: /^The canary in domain cadence_canary completes no workflow \(since /,
  },
  'history fails a tenth of what it serves': {
    change: of(
      /^cadence_errors_context_timeout\{cadence_service="cadence_history"/,
      (own, _, step) => own + (step - 20) * 60,
    ),
    says: /^Requests from .* to history fail \(since /,
  },
  'the store fails history': {
    adds: (after) => ({
      history: [
        `persistence_errors_per_domain{cadence_service="cadence_history",domain="cadence_bench",operation="UpdateWorkflowExecution",is_retry="false"} ${after * 400}`,
      ],
    }),
    says: /^Role history has persistence errors \(since /,
  },
  'the heap of matching is of 9 GB': {
    change: of(/^memory_heap\{cadence_service="cadence_matching"/, () => 9e9),
    steps: 44,
    says: /^Role matching has a large heap \(since /,
  },
  'shards move': {
    adds: (after) => ({
      history: [
        `shard_closed_count{cadence_service="cadence_history",operation="ShardController"} ${after * 15}`,
      ],
    }),
    steps: 65,
    says: /^Shards of role history keep moving \(since /,
  },
  'transfer tasks are late': {
    change: of(
      /^task_latency_queue_bucket\{.*operation="TransferActive.*le="(?:[0-5]|\d\.?\d*e-\d+|0\.\d+)"/,
      (_, line) => grown(line, 20),
    ),
    steps: 45,
    says: /^The task queue transfer of history is late \(since /,
  },
};

describe('the recorded pages of a real service', () => {
  test('in health all is well, although callers count answers as errors', async () => {
    const { before, after } = await played({ steps: 20 });
    expect([before, after]).toEqual(['All is well: 4 roles.', 'All is well: 4 roles.']);
  });

  test.each(Object.entries(faults))('%s: the first sentence names it', async (_, { says, ...fault }) => {
    const { before, after } = await played(fault);
    if (!fault.hasOrphans) expect(before).toBe('All is well: 4 roles.');
    expect(after).toMatch(says);
  });
});
