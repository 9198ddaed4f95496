import { createServiceReadings } from '../../src/agent/verdict/readings.ts';
import { createJudge } from '../../src/agent/verdict/verdict.ts';
import { statusFactsOf } from '../status-report.ts';
import { createWorld } from './world.ts';

/** A fleet, and what an agent concludes from it a quarter of a minute later. */
export function fleet() {
  const world = createWorld();
  let readings = createServiceReadings();
  let judge = createJudge();
  let startedAt: string | undefined;
  let hasRestarted = false;
  let lookedMs = Number.NaN;
  const look = () => {
    const { nowMs, monotonicMs, facts, rows } = world.step();
    lookedMs = nowMs;
    if (hasRestarted) startedAt = new Date(nowMs).toISOString();
    hasRestarted = false;
    readings.sample(rows, { nowMs, monotonicMs });
    return judge.judge(
      statusFactsOf({ ...facts, ...(startedAt && { startedAt }), ...readings.report() }),
      nowMs,
    );
  };
  return {
    world,
    get judge() {
      return judge;
    },
    look,
    /** The wall clock at the last look, ms. */
    get lookedMs() {
      return lookedMs;
    },
    /** What the agent concludes while this many quarters of a minute pass. */
    pass: (looks: number) => Array.from({ length: looks }, look),
    /** Restarts the agent: the next look is the first of a new agent, which has restored the state of this one. */
    restart() {
      const next = createJudge();
      next.durable.restore(judge.durable.freeze());
      [judge, readings, hasRestarted] = [next, createServiceReadings(), true];
    },
  };
}
