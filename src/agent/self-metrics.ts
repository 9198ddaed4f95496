import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  type MetricObjectWithValues,
  type MetricValueWithName,
  Registry,
} from 'prom-client';
import { type AgentMetricName, agentMetric } from '../core/agent-metrics.ts';
import type { Intake, RawTags } from '../core/model.ts';
import { hostedFailureReasons, pushFailureReasons } from '../core/reasons.ts';
import { createEventLoopDelays, type EventLoopDelays, openDelayGauges } from './event-loop-lag.ts';
import { version } from './installation.ts';

/** prom-client cannot leave out its sampler of the event loop; with this interval it never wakes the process. */
const neverMs = 2 ** 31 - 1;

const gauge = (registry: Registry, name: AgentMetricName) =>
  new Gauge({ name, help: agentMetric(name).help, registers: [registry] });
const counter = (registry: Registry, name: AgentMetricName) =>
  new Counter({ name, help: agentMetric(name).help, registers: [registry] });

/** A timestamp gauge. Without an event it is absent, because 0 would mean 1970. */
function moment(registry: Registry, name: AgentMetricName) {
  const opened = gauge(registry, name);
  opened.remove();
  return opened;
}

/** The agent's own instruments, stored by prom-client. They start at 0 with the process. */
export function createSelfMetrics(delays: Pick<EventLoopDelays, 'take'> = createEventLoopDelays()) {
  const registry = new Registry();
  collectDefaultMetrics({
    register: registry,
    prefix: 'svc_agent_',
    eventLoopMonitoringPrecision: neverMs,
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

  openDelayGauges(registry, delays);

  return {
    registry,
    reloadSuccessful: gauge(registry, 'svc_agent_config_last_reload_successful'),
    reloadSuccessTimestamp: moment(registry, 'svc_agent_config_last_reload_success_timestamp_seconds'),
    stateDegraded: gauge(registry, 'svc_agent_state_degraded'),
    stateLastCommit: moment(registry, 'svc_agent_state_last_commit_timestamp_seconds'),
    stateCommitFailures: counter(registry, 'svc_agent_state_commit_failures_total'),
    statsdKernelDrops: counter(registry, 'svc_agent_statsd_kernel_drops_total'),
    logFilesPassedOver: new Gauge({
      name: 'svc_agent_log_files_passed_over',
      help: agentMetric('svc_agent_log_files_passed_over').help,
      labelNames: ['svc_service', 'reason'],
      registers: [registry],
    }),
    showReport: createReportGauges(registry),
    reportLastSuccess: moment(registry, 'svc_agent_report_last_success_timestamp_seconds'),
    reportFailures,
    queueBytes: gauge(registry, 'svc_agent_queue_bytes'),
    queueOldest: moment(registry, 'svc_agent_queue_oldest_timestamp_seconds'),
  };
}

/** The parts of a report that are shown as series. */
interface ShownReport {
  incidents: readonly { kind: string; subject: string }[];
  telemetryTruth: Readonly<Record<string, number>>;
  maintenance?: string;
}

/** How many causes have a series; the status has all of them. */
const mostIncidents = 50;

/** Shows parts of a report as series: the problems that last, and how much of its errors each role's metrics show. */
function createReportGauges(registry: Registry) {
  const labelled = (name: AgentMetricName, labelNames: string[]) =>
    new Gauge({ name, help: agentMetric(name).help, labelNames, registers: [registry] });
  const incident = labelled('svc_incident', ['cause', 'subject']);
  const truth = labelled('svc_telemetry_truth_ratio', ['svc_service']);
  const maintenance = gauge(registry, 'svc_maintenance');
  return ({ incidents, telemetryTruth, maintenance: until }: ShownReport): void => {
    incident.reset();
    for (const { kind, subject } of incidents.slice(0, mostIncidents))
      incident.set({ cause: kind, subject }, 1);
    truth.reset();
    for (const [role, ratio] of Object.entries(telemetryTruth)) truth.set({ svc_service: role }, ratio);
    maintenance.set(until === undefined ? 0 : 1);
  };
}

export type SelfMetrics = ReturnType<typeof createSelfMetrics>;

type PromValue = MetricValueWithName<string>;
type PromMetric = MetricObjectWithValues<PromValue>;

/** A series of prom-client that is copied into the registry. */
interface Relayed {
  set(values: readonly PromValue[]): void;
  release(): void;
}

const splitLabel = { histogram: 'le', summary: 'quantile' } as const;
const isSplit = (type: string): type is keyof typeof splitLabel => type in splitLabel;

function tagsOf(value: PromValue, without: string): RawTags {
  const pairs = Object.entries(value.labels).filter(([name]) => name !== without);
  return Object.fromEntries(pairs.map(([name, text]) => [name, String(text)]));
}

/**
 * Copies prom-client's numbers into the registry, so that every reporter sends them like all other
 * series. Call it before a view is taken; series that prom-client
 * dropped are released.
 */
export function copySelfMetrics(registry: Registry, intake: Intake): () => Promise<void> {
  let known = new Map<string, Relayed>();
  return async () => {
    const seen = new Map<string, Relayed>();
    const metrics = (await registry.getMetricsAsJSON()) as unknown as PromMetric[];
    for (const metric of metrics) {
      const type = String(metric.type);
      for (const [key, values] of grouped(metric, isSplit(type) ? splitLabel[type] : '')) {
        const relayed = known.get(key) ?? open(intake, metric, type, values);
        relayed.set(values);
        seen.set(key, relayed);
      }
    }
    for (const [key, relayed] of known) if (!seen.has(key)) relayed.release();
    known = seen;
  };
}

/** A metric's values by their labels without the label that splits a distribution. */
function grouped(metric: PromMetric, split: string): Map<string, PromValue[]> {
  const groups = new Map<string, PromValue[]>();
  for (const value of metric.values) {
    const key = JSON.stringify([metric.name, tagsOf(value, split)]);
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return groups;
}

/**
 * The name of a gauge of prom-client: `…_active_handles_total` becomes `…_handles`, because only counters end in `_total`
 * (promtool check metrics).
 */
const gaugeName = (name: string): string => name.replace(/active_(\w+)_total$/, '$1');

function open(intake: Intake, metric: PromMetric, type: string, values: readonly PromValue[]): Relayed {
  const shape = { help: metric.help };
  if (!isSplit(type)) {
    const handle = (type === 'counter' ? intake.counter : intake.gauge)(
      type === 'gauge' ? gaugeName(metric.name) : metric.name,
      tagsOf(values[0]!, ''),
      shape,
    );
    return { set: ([value]) => handle.set(value!.value), release: () => handle.release() };
  }
  const split = splitLabel[type];
  const texts = values.filter((v) => split in v.labels).map((v) => String(v.labels[split]));
  const tags = tagsOf(values[0]!, split);
  const handle =
    type === 'histogram'
      ? intake.histogram(metric.name, tags, {
          ...shape,
          bounds: texts.filter((t) => t !== '+Inf').map(Number),
        })
      : intake.summary(metric.name, tags, { ...shape, quantiles: texts });
  return { set: (now) => handle.set(partsOf(metric.name, split, now)), release: () => handle.release() };
}

/** The numbers of a distribution in the order of the model: buckets or quantiles, then sum, then count. */
function partsOf(name: string, split: string, values: readonly PromValue[]): number[] {
  const named = (suffix: string) => values.find((v) => v.metricName === `${name}${suffix}`)?.value ?? 0;
  return [...values.filter((v) => split in v.labels).map((v) => v.value), named('_sum'), named('_count')];
}
