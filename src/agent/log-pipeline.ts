import { agentMetric } from '../core/agent-metrics.ts';
import type { Gauge } from '../core/model.ts';
import type { Clock, Drops, Log, Stop } from '../core/ports.ts';
import type { Registry } from '../core/registry/registry.ts';
import { inSlices } from '../core/slices.ts';
import { createFileFaults, type FileFaults } from '../sources/logs/faults/file-faults.ts';
import { createLastErrors, type LastErrors } from '../sources/logs/metrics/last-errors.ts';
import { createLineSinks, type LineSinks, openLineSinks } from '../sources/logs/metrics/line-sinks.ts';
import type { ProcessEvents } from '../sources/logs/metrics/service-metrics.ts';
import { createLogs, type LogsSelection, type LogsSource } from '../sources/logs/source.ts';
import type { AgentConfig } from './config/types.ts';
import { type Intakes, openIntakes } from './intakes.ts';
import { mostOpenFiles, openLogsLimit } from './open-files.ts';
import { copySelfMetrics, type SelfMetrics } from './self-metrics.ts';
import type { StateSection } from './state/state.ts';

const family = agentMetric('svc_log_lag_bytes');

/** Maintains `svc_log_lag_bytes` of each service. After a reload the gauges are opened again with their last values. */
function createLag() {
  const reported = new Map<string, number>();
  let gauges = new Map<string, Gauge>();
  let intakes: Intakes | undefined;

  const set = (service: string, bytes: number) => {
    const gauge = gauges.get(service) ?? intakes?.lag(service).gauge(family.name, {}, { help: family.help });
    if (!gauge) return;
    gauge.set(bytes);
    gauges.set(service, gauge);
  };
  return {
    setLag(service: string, bytes: number): void {
      reported.set(service, bytes);
      set(service, bytes);
    },
    /** Switches to other intakes; only these services still have a lag. */
    renew(next: Intakes, services: ReadonlySet<string>): void {
      intakes = next;
      gauges = new Map();
      for (const [service, bytes] of reported) {
        if (services.has(service)) set(service, bytes);
        else reported.delete(service);
      }
    },
  };
}

/** The log source's options of a configuration. */
export function logsSelectionOf(config: AgentConfig): LogsSelection {
  const services = Object.fromEntries(
    config.services.flatMap(({ name, logs }) => (logs ? [[name, logs]] : [])),
  );
  return { services, selected: new Set(config.roles.filter((role) => Object.hasOwn(services, role))) };
}

/**
 * Builds the sinks that count the log lines of a configuration on `registry`, and discards them. Throws what a start would throw.
 */
export function checkLogs(config: AgentConfig, registry: Registry, deps: { clock: Clock; log: Log }): void {
  const selection = logsSelectionOf(config);
  const intakes = openIntakes(registry, config);
  const sinks = createLineSinks(selection, { ...deps, intakes: intakes.logs, drops: registry.drops });
  createLogs(selection, { ...deps, openSink: sinks.open, lag: () => {} });
  for (const service of selection.selected) sinks.open({ path: '', claimants: [service] });
  intakes.close();
}

/** Interval of the check for idle series of log rules. */
const sweepIntervalMs = 10_000;

interface LogPipelineDeps {
  /** Receives start-up lines and entries of the services. */
  processEvents: ProcessEvents;
  /** Called when new intakes are open. The former intakes ended in the same step, and those of logs before that step. */
  opened(intakes: Intakes, config: AgentConfig): void;
  registry: Registry;
  self: SelfMetrics;
  logsSection: StateSection;
  clock: Clock;
  drops: Drops;
  log: Log;
}

/** The counters that the agent maintains itself: log lines and its own instruments. */
interface LogPipeline {
  /** Starts. Resolves when every existing log file has its position. */
  start(config: AgentConfig): Promise<void>;
  /**
   * Compiles another configuration's patterns, which may throw. The result switches to that configuration and does not fail. No
   * line is counted meanwhile, and a view would miss series: see `switched`.
   */
  prepare(config: AgentConfig): () => Promise<void>;
  /** While the pipeline switches to another configuration: resolves when it has switched. */
  readonly switched: Promise<void> | undefined;
  stop(): Promise<void>;
  relaySelf(): Promise<void>;
  files: LogsSource['files'];
  /** Faults that prevent logs from being written where they can be read. */
  faults: FileFaults['faults'];
  lastErrors: Pick<LastErrors, 'all' | 'byService'>;
}

export function createLogPipeline(deps: LogPipelineDeps): LogPipeline {
  const { registry, self, logsSection, processEvents, clock, drops, log } = deps;
  const lag = createLag();
  const lastErrors = createLastErrors(clock.nowMs);
  let intakes: Intakes | undefined;
  let relaySelf = async () => {};
  let sweep = (_nowMs: number) => {};
  let cancelSweep = () => {};
  let logs: LogsSource | undefined;
  let stopLogs: Stop = async () => {};
  let selection: LogsSelection = { services: {}, selected: new Set() };
  const files = () => logs?.files() ?? [];
  const fileFaults = createFileFaults({ selection: () => selection, files, clock });
  let stopFaults: Stop = async () => {};
  let switched: Promise<void> | undefined;

  const sweepOn = () => {
    sweep(clock.monotonicMs());
    cancelSweep = clock.after(sweepIntervalMs, sweepOn);
  };

  /** Ends the intakes of logs and opens new ones, into which the state restores the durable series, in slices. */
  const open = async (config: AgentConfig): Promise<LineSinks['open']> => {
    await intakes?.closeLogs();
    const opened = openIntakes(registry, config);
    selection = logsSelectionOf(config);
    const sinks = await inSlices(
      openLineSinks(selection, { intakes: opened.logs, drops, clock, processEvents, lastErrors }),
      clock,
    );
    // This is one step, because probes and roles do not stop meanwhile. Their intakes have few series.
    opened.inherit(intakes?.close(config) ?? new Map());
    intakes = opened;
    relaySelf = copySelfMetrics(self.registry, opened.self);
    sweep = sinks.sweep;
    deps.opened(opened, config);
    opened.closeUnused();
    lag.renew(opened, new Set([...selection.selected, 'unknown']));
    return sinks.open;
  };

  return {
    async start(config) {
      const openSink = await open(config);
      const options = { ...logsSelectionOf(config), maxOpenFiles: openLogsLimit(mostOpenFiles()) };
      logs = createLogs(options, {
        openSink,
        lag: lag.setLag,
        clock,
        log: log.named('logs'),
      });
      logsSection.assign(logs);
      stopLogs = await logs.start();
      stopFaults = fileFaults.start();
      sweepOn();
    },
    prepare(config) {
      const swapLogs = logs?.prepare(logsSelectionOf(config));
      return async () => {
        sweep = () => {};
        switched = swapLogs?.(() => open(config)).finally(() => {
          switched = undefined;
        });
        await switched;
      };
    },
    get switched() {
      return switched;
    },
    async stop() {
      cancelSweep();
      await stopFaults();
      await stopLogs();
    },
    relaySelf() {
      self.logFilesPassedOver.reset();
      for (const { service, reason } of logs?.passedOver ?? [])
        self.logFilesPassedOver.inc({ svc_service: service, reason });
      return relaySelf();
    },
    files,
    faults: fileFaults.faults,
    lastErrors,
  };
}
