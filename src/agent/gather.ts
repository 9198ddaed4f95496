import { type Attributes, SpanStatusCode, trace } from '@opentelemetry/api';
import { errorText } from '../core/errors.ts';
import type { Gather, GatherRequest } from '../core/ports.ts';
import type { Registry } from '../core/registry.ts';
import { version } from './installation.ts';
import type { SelfMetrics } from './self-metrics.ts';
import type { State } from './state/state.ts';

/** Runs `work` inside a span; free while no SDK is registered (CONTRIBUTING, Tracing). Rethrows what `work` throws. */
export function spanned<T>(name: string, work: () => Promise<T>, attributes: Attributes = {}): Promise<T> {
  return trace.getTracer('svc-agent', version).startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work();
    } catch (thrown) {
      span.recordException(thrown instanceof Error ? thrown : errorText(thrown));
      span.setStatus({ code: SpanStatusCode.ERROR, message: errorText(thrown) });
      throw thrown;
    } finally {
      span.end();
    }
  });
}

interface GatherDeps {
  registry: Registry;
  state: State;
  self: SelfMetrics;
  /** Copies the agent's own instruments into the registry. */
  relaySelf(): Promise<void>;
  /** While a reload moves the series of logs to other intakes: resolves when it has. */
  switched(): Promise<void> | undefined;
  /** Awaits the pages that the gather is to show. */
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
    self.noteLag();
  };
  /** Concurrent gathers share a copy: two at a time would release each other's series. */
  const relay = () => {
    relaying ??= relaySelf().finally(() => {
      relaying = undefined;
    });
    return relaying;
  };
  return (request) =>
    spanned('gather', async () => {
      await refresh(request);
      request.frozen?.();
      await spanned('commit', () => state.commit());
      noteState();
      await relay();
      for (let move = switched(); move; move = switched()) await move;
      return registry.view(request.takes);
    });
}
