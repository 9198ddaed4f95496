import type { StatusFacts } from '../src/agent/report.ts';
import { createJudge, type Judge } from '../src/agent/verdict/verdict.ts';
import { statusFactsOf } from './status-report.ts';

// Computes verdicts for passing seconds without an agent.

const startMs = Date.parse('2026-01-01T00:00:00.000Z');
export const atOf = (seconds: number) => new Date(startMs + seconds * 1e3).toISOString();

/** The judge's verdict on the facts of a moment. At the first moment the agent has run for an hour. */
export const look = (judge: Judge, seconds: number, facts: Partial<StatusFacts>) =>
  judge.judge(
    statusFactsOf({ startedAt: atOf(-3600), now: atOf(seconds), ...facts }),
    startMs + seconds * 1e3,
  );

/** The judge of an agent that starts with the state that another agent wrote. */
export const restarted = (judge: Judge): Judge => {
  const next = createJudge();
  next.durable.restore(judge.durable.freeze());
  return next;
};
