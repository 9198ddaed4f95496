import type { Gather } from '../core/ports.ts';
import { createHistory } from './admin/history.ts';
import { createLive } from './admin/live.ts';
import type { AgentConfig } from './config/types.ts';
import { bindEndpoints, type Endpoints, type EndpointsDeps } from './endpoints.ts';
import type { Prepared } from './reload.ts';
import type { StatusReport } from './report.ts';
import type { State } from './state/state.ts';

/** The maximum age of the committed counts that the status shows. */
const freshMs = 4_000;

interface EndpointPipelineDeps extends Omit<EndpointsDeps, 'status'> {
  report(): StatusReport;
  gather: Gather;
  /** Receives the addresses whenever they change. */
  listening: { addresses: Endpoints['addresses'] };
  state: State;
  /** While the logs switch to another configuration: resolves when they have switched. */
  switched(): Promise<void> | undefined;
}

/** The listeners of a configuration, together with the history and the streams of the status page, which outlive a reload. */
interface EndpointPipeline {
  bind(config: AgentConfig): Promise<void>;
  /** Serves requests on the bound listeners. */
  open(): Promise<void>;
  prepare(config: AgentConfig): Promise<Prepared>;
  /** Ends the history and every stream, so that `close` does not wait for them. */
  endStreams(): void;
  close(): Promise<void>;
}

export function createEndpointPipeline(deps: EndpointPipelineDeps): EndpointPipeline {
  const { report, gather, state, clock, drops, listening } = deps;
  let bound: Endpoints | undefined;
  let hasStatus = false;
  /** Commits, because the status shows committed counts of logs; the commit of a scrape is recent enough. */
  const commit = async () => {
    const { lastCommitMs = 0 } = state.status();
    if (Math.abs(clock.nowMs() - lastCommitMs) >= freshMs) await state.commit();
    await deps.switched();
  };
  const history = createHistory({}, { report, commit, clock });
  const live = createLive({ report, history, commit, clock, drops });
  const { listeners, health, probes, announce, checkNow, mark, roleDown, readSecret, log } = deps;
  const status = { report, history, live };
  const served = { listeners, health, status, probes, announce, checkNow, mark, roleDown };
  const bind = (config: AgentConfig) => bindEndpoints(config, { ...served, readSecret, clock, drops, log });
  const take = (next: Endpoints) => {
    bound = next;
    listening.addresses = next.addresses;
  };

  return {
    async bind(config) {
      take(await bind(config));
      hasStatus = config.admin !== undefined;
    },
    async open() {
      await bound?.open(gather);
      if (hasStatus) history.start();
    },
    async prepare(config) {
      const next = await bind(config);
      return {
        async swap() {
          const before = bound;
          take(next);
          try {
            await next.open(gather);
          } finally {
            // Browsers connect again, with the listener's new authentication.
            live.endAll();
            if (config.admin) history.start();
            await before?.close();
          }
        },
        discard: next.close,
      };
    },
    endStreams() {
      history.stop();
      live.endAll();
    },
    close: async () => bound?.close(),
  };
}
