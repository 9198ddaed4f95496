import type { BriefFacts } from '../report.ts';

/** What the time of a problem or of a change may depend on, as text. Numbers that change all the time are left out. */
const stampOf = (facts: BriefFacts): string =>
  JSON.stringify([
    facts.probes.map(({ name, state, flapping, last }) => [
      name,
      state,
      flapping,
      last?.ok,
      last?.reason,
      last?.failedChecks,
    ]),
    facts.scrapes.map(({ service, up, lastFailure }) => [service, up, lastFailure?.reason]),
    facts.reporters.map(({ block, failingSince }) => [block, failingSince]),
    facts.logs.map(({ path, state }) => [path, state]),
    facts.logFaults.map(({ path, kind }) => [path, kind]),
    facts.restarts,
    facts.state.degraded,
    facts.config.lastReloadError,
  ]);

/**
 * Returns whether something may have begun or ended since the last facts. It is then judged at once, and its time is that of
 * these facts. What only numbers show waits for the next sample of the values of the service.
 */
export function createNews(): (facts: BriefFacts) => boolean {
  let before = '';
  return (facts) => {
    const now = stampOf(facts);
    const isNew = now !== before;
    before = now;
    return isNew;
  };
}
