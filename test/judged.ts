import type { StatusFacts } from '../src/agent/report.ts';
import { createJudge, type Judge } from '../src/agent/verdict/verdict.ts';
import { statusFactsOf } from './status-report.ts';

// The verdict as seconds go by, without an agent.

const startMs = Date.parse('2026-01-01T00:00:00.000Z');
export const atOf = (seconds: number) => new Date(startMs + seconds * 1e3).toISOString();

/** What the judge says of the facts of a moment; the agent has run for an hour by the first one. */
export const look = (judge: Judge, seconds: number, facts: Partial<StatusFacts>) =>
  judge.judge(
    statusFactsOf({ startedAt: atOf(-3600), now: atOf(seconds), ...facts }),
    startMs + seconds * 1e3,
  );

/** The judge of an agent that begins with what another one wrote. */
export const restarted = (judge: Judge): Judge => {
  const next = createJudge();
  next.durable.restore(judge.durable.freeze());
  return next;
};
