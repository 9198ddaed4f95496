import type { Gather, GatherRequest } from '../core/ports.ts';
import type { Registry } from '../core/registry/registry.ts';
import type { SelfMetrics } from './self-metrics.ts';
import type { State } from './state/state.ts';
import { tracing } from './tracing.ts';

interface GatherDeps {
  registry: Registry;
  state: State;
  self: SelfMetrics;
  /** Copies the agent's own instruments into the registry. */
  relaySelf(): Promise<void>;
  /** While a reload moves the series of logs to other intakes: resolves when they have moved. */
  switched(): Promise<void> | undefined;
  /** Waits for the pages that the gather shows. */
  refresh(request: GatherRequest): Promise<void>;
}

/**
 * Gives every reporter its view: commit, then read (docs/guarantees.md). The result of the commit is copied to the agent's
 * own instruments before the view is taken, so that a scrape shows the state that it is based on.
 */
export function createGather({ registry, state, self, relaySelf, switched, refresh }: GatherDeps): Gather {
  let failures = 0;
  let relaying: Promise<void> | undefined;
  const noteState = () => {
    const status = state.status();
    self.stateDegraded.set(status.degraded ? 1 : 0);
    if (status.lastCommitMs !== undefined) self.stateLastCommit.set(status.lastCommitMs / 1e3);
    self.stateCommitFailures.inc(status.failures - failures);
    failures = status.failures;
  };
  /** Concurrent gathers share a copy: two copies at a time would release each other's series. */
  const relay = () => {
    relaying ??= relaySelf().finally(() => {
      relaying = undefined;
    });
    return relaying;
  };
  return (request) =>
    tracing.span('gather', {}, async (found) => {
      await refresh(request);
      request.frozen?.();
      await tracing.span('commit', {}, async (committed) => {
        await state.commit();
        const { degraded } = state.status();
        committed({ 'svc.state.degraded': degraded !== undefined }, degraded && `cannot write: ${degraded}`);
      });
      noteState();
      await relay();
      for (let move = switched(); move; move = switched()) await move;
      const view = registry.view(request.takes);
      const series = view.families.reduce((sum, family) => sum + family.series.length, 0);
      found({ 'svc.families': view.families.length, 'svc.series': series });
      return view;
    });
}
