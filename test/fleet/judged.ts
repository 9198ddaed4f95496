import { createServiceReadings } from '../../src/agent/verdict/readings.ts';
import { createJudge } from '../../src/agent/verdict/verdict.ts';
import { statusFactsOf } from '../status-report.ts';
import { createWorld } from './world.ts';

/** A fleet, and what an agent concludes from it a quarter of a minute later. */
export function fleet() {
  const world = createWorld();
  const readings = createServiceReadings();
  const judge = createJudge();
  const look = () => {
    const { nowMs, monotonicMs, facts, rows } = world.step();
    readings.sample(rows, { nowMs, monotonicMs });
    return judge.judge(statusFactsOf({ ...facts, ...readings.report() }), nowMs);
  };
  /** What it concludes as so many quarters of a minute go by. */
  const pass = (looks: number) => Array.from({ length: looks }, look);
  return { world, judge, look, pass };
}
