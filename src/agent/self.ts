import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { type AgentMetricName, agentMetric } from '../core/agent-metrics.ts';
import { hostedFailureReasons, pushFailureReasons } from '../core/reasons.ts';
import { version } from './version.ts';

/** How often the event loop's delay is sampled; finer costs wake-ups of an idle process. */
const lagResolutionMs = 100;

const gauge = (registry: Registry, name: AgentMetricName) =>
  new Gauge({ name, help: agentMetric(name).help, registers: [registry] });
const counter = (registry: Registry, name: AgentMetricName) =>
  new Counter({ name, help: agentMetric(name).help, registers: [registry] });

/** A moment that has not come yet is absent: 0 would be an age of half a century in every rule. */
function moment(registry: Registry, name: AgentMetricName) {
  const opened = gauge(registry, name);
  opened.remove();
  return opened;
}

/**
 * The agent's own instruments, kept by prom-client: they are few, bounded and never relayed, which is what it
 * is made for (DESIGN §2). They start at 0 with the process.
 */
export function createSelf() {
  const registry = new Registry();
  collectDefaultMetrics({
    register: registry,
    prefix: 'svc_agent_',
    eventLoopMonitoringPrecision: lagResolutionMs,
  });

  const buildInfo = new Gauge({
    name: 'svc_agent_build_info',
    help: agentMetric('svc_agent_build_info').help,
    labelNames: ['version', 'node'],
    registers: [registry],
  });
  buildInfo.set({ version, node: process.versions.node }, 1);

  const reportFailures = new Counter({
    name: 'svc_agent_report_failures_total',
    help: agentMetric('svc_agent_report_failures_total').help,
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of new Set([...pushFailureReasons, ...hostedFailureReasons]))
    reportFailures.inc({ reason }, 0);

  const delay = monitorEventLoopDelay({ resolution: lagResolutionMs });
  delay.enable();
  const lag = gauge(registry, 'svc_agent_event_loop_lag_seconds');
  const noteLag = () => {
    // The histogram counts the sampling interval itself; what is beyond it is lag.
    lag.set(Math.max(0, delay.max / 1e9 - lagResolutionMs / 1e3));
    delay.reset();
  };

  return {
    registry,
    noteLag,
    reloadSuccessful: gauge(registry, 'svc_agent_config_last_reload_successful'),
    reloadSuccessTimestamp: moment(registry, 'svc_agent_config_last_reload_success_timestamp_seconds'),
    stateDegraded: gauge(registry, 'svc_agent_state_degraded'),
    stateLastCommit: moment(registry, 'svc_agent_state_last_commit_timestamp_seconds'),
    stateCommitFailures: counter(registry, 'svc_agent_state_commit_failures_total'),
    statsdKernelDrops: counter(registry, 'svc_agent_statsd_kernel_drops_total'),
    reportLastSuccess: moment(registry, 'svc_agent_report_last_success_timestamp_seconds'),
    reportFailures,
    queueBytes: gauge(registry, 'svc_agent_queue_bytes'),
    queueOldest: moment(registry, 'svc_agent_queue_oldest_timestamp_seconds'),
    stop: () => delay.disable(),
  };
}

export type Self = ReturnType<typeof createSelf>;
