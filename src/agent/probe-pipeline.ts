import type { ReadSecret } from '../core/access.ts';
import type { Clock, Log, Readings } from '../core/ports.ts';
import { planProbes } from '../probes/plan.ts';
import type { ProbeReport } from '../probes/runner/probe-state.ts';
import { createRunner, type Runner } from '../probes/runner/runner.ts';
import type { AgentConfig } from './config/types.ts';
import type { Intakes } from './intakes.ts';
import type { Roles } from './role-restarts.ts';
import type { StateSection } from './state/state.ts';
import { tracing } from './tracing.ts';

interface ProbePipelineDeps {
  section: StateSection;
  roles: Pick<Roles, 'healthChecked'>;
  readings: Readings;
  readSecret: ReadSecret;
  clock: Clock;
  log: Log;
}

/** Every probe of a configuration. */
interface ProbePipeline {
  /** Switches to another configuration and its intakes in one step. */
  configure(config: AgentConfig, intakes: Intakes): void;
  /** Whether the role's last health check failed; false without a result. */
  isDown(role: string): boolean;
  reports(): readonly ProbeReport[];
  /** Runs a probe now; undefined if no probe with this name is configured. */
  checkNow(name: string): Promise<ProbeReport | undefined>;
  stop(): Promise<void>;
}

export function createProbePipeline(deps: ProbePipelineDeps): ProbePipeline {
  const { section, roles, readings, readSecret, clock } = deps;
  const log = deps.log.named('probes');
  const down = new Set<string>();
  let runner: Runner | undefined;

  const open = ({ instance }: AgentConfig): Runner => {
    const opened = createRunner(
      { instance },
      {
        readings,
        readSecret,
        clock,
        log,
        tracing,
        onResult({ kind, service }, { ok, reason }) {
          if (kind !== 'health') return;
          if (ok) down.delete(service);
          else down.add(service);
          roles.healthChecked(service, reason);
        },
      },
    );
    section.assign(opened.durable);
    return opened;
  };

  return {
    configure(config, intakes) {
      const rows = planProbes(config);
      if (!runner && rows.length === 0) return;
      runner ??= open(config);
      const checked = new Set(rows.filter(({ kind }) => kind === 'health').map(({ service }) => service));
      for (const service of down) if (!checked.has(service)) down.delete(service);
      runner.configure(rows, { immediate: intakes.found, kept: intakes.kept, durable: intakes.events });
    },
    isDown: (role) => down.has(role),
    reports: () => runner?.reports() ?? [],
    checkNow: async (name) => runner?.checkNow(name),
    stop: async () => runner?.stop(),
  };
}
