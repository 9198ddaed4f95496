import type { RawTags } from '../../../../src/core/model.ts';
import type { Log, LogFields, LogLevel } from '../../../../src/core/ports.ts';
import { createDurableStore, type DurableStore } from '../../../../src/core/registry/durable-store.ts';
import type { OpenIntake } from '../../../../src/core/registry/intake.ts';
import type { Finding, ProbeDeps, ProbeRow } from '../../../../src/probes/probe.ts';
import type { ProbeIntakes } from '../../../../src/probes/runner/probe-series.ts';
import type { OnResult, ProbeReport } from '../../../../src/probes/runner/probe-state.ts';
import { createRunner, type Runner, type RunnerOptions } from '../../../../src/probes/runner/runner.ts';
import { type ManualClock, manualClock } from '../../../clock.ts';
import { type TestRegistry, testRegistry } from '../../../registry.ts';

/** Lets everything run that waits only for its turn in the event loop. */
export async function rest(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => void setImmediate(resolve));
}

/** One check of a scripted probe; it lasts until the test ends it. */
interface ScriptedCheck {
  readonly signal: AbortSignal;
  readonly recalled: unknown;
  /** Settles the check, and lets the runner handle the result. */
  finds(finding?: Partial<Finding>): Promise<void>;
  throws(error: unknown): Promise<void>;
}

/** A probe that does what the test says. */
export interface Scripted {
  row: ProbeRow;
  readonly checks: ScriptedCheck[];
  /** The last of the checks. */
  readonly lastCheck: ScriptedCheck;
  opened: number;
  closed: number;
}

export interface Script {
  row?: Partial<ProbeRow>;
  intervalMs?: number;
  timeoutMs?: number;
  failureThreshold?: number;
  successThreshold?: number;
  /** If set, the probe answers by itself at once. */
  answers?: (signal: AbortSignal, recalled: unknown) => Promise<Finding>;
}

export function scripted(name: string, script: Script = {}): Scripted {
  const { intervalMs = 60_000, timeoutMs = 5_000, failureThreshold, successThreshold } = script;
  const checks: ScriptedCheck[] = [];
  const probe: Scripted = {
    checks: checks,
    get lastCheck() {
      return checks.at(-1)!;
    },
    opened: 0,
    closed: 0,
    row: {
      name,
      kind: 'health',
      target: `http://127.0.0.1/${name}`,
      service: '',
      reasons: [],
      schedule: { intervalMs, timeoutMs, failureThreshold, successThreshold },
      shows: {},
      key: name,
      async open() {
        probe.opened += 1;
        return {
          check: (signal, recalled) =>
            new Promise<Finding>((resolve, reject) => {
              checks.push({
                signal,
                recalled,
                async finds(finding = {}) {
                  resolve({ msg: 'ok', ...finding });
                  await rest();
                },
                async throws(error) {
                  reject(error);
                  await rest();
                },
              });
              if (script.answers) resolve(script.answers(signal, recalled));
            }),
          async close() {
            probe.closed += 1;
          },
        };
      },
      ...script.row,
    },
  };
  return probe;
}

export interface Entry {
  level: LogLevel;
  msg: string;
  fields: LogFields;
}

export interface RunnerBed extends TestRegistry {
  runner: Runner;
  entries: Entry[];
  heard: [name: string, ok: boolean][];
  intakes: BedIntakes;
  /** Passes the rows to the runner, with the present intakes. */
  configure(...probes: Scripted[]): void;
  /** Advances the clock in steps, and lets what falls due in each step finish. */
  pass(ms: number, stepMs?: number): Promise<void>;
  /** Advances the clock to the time at which the probe is next due; returns its last check then. */
  due(probe: Scripted): Promise<ScriptedCheck>;
  report(probe: Scripted): ProbeReport;
  /** What views show of a probe's series, with the committed values of durable ones. */
  series(start?: string): Record<string, number | number[]>;
}

interface BedIntakes extends ProbeIntakes {
  close(): void;
}

function openIntakes({ registry }: TestRegistry, globalTags: RawTags): BedIntakes {
  const open = new Map<string, OpenIntake>();
  const of = (place: 'immediate' | 'kept' | 'durable') => (service: string) => {
    const key = `${place} ${service}`;
    const intake =
      open.get(key) ??
      registry.intake({
        service,
        component: 'probes',
        relayed: false,
        rank: 0,
        store: place === 'durable' ? registry.durable : registry.immediate,
        externalTotals: place === 'kept',
        globalTags,
        received: false,
        tagService: service !== '',
      });
    open.set(key, intake);
    return intake;
  };
  return {
    immediate: of('immediate'),
    kept: of('kept'),
    durable: of('durable'),
    close: () => [...open.values()].forEach((intake) => void intake.close()),
  };
}

interface BedOptions extends Partial<RunnerOptions> {
  onResult?: OnResult;
  /** The store that an earlier run left. */
  durable?: DurableStore;
}

export function runnerBed({
  onResult,
  durable = createDurableStore(),
  ...options
}: BedOptions = {}): RunnerBed {
  const under = testRegistry({ durable });
  const { clock } = under;
  const entries: Entry[] = [];
  const heard: RunnerBed['heard'] = [];
  const deps = { ...probeDeps(clock, entries), onResult };
  const runner = createRunner(
    { instance: 'host-1', ...options },
    {
      ...deps,
      onResult(row, result) {
        heard.push([row.name, result.ok]);
        onResult?.(row, result);
      },
    },
  );
  const bed: RunnerBed = {
    ...under,
    runner,
    entries,
    heard,
    intakes: openIntakes(under, {}),
    configure: (...probes) =>
      runner.configure(
        probes.map(({ row }) => row),
        bed.intakes,
      ),
    async pass(ms, stepMs = ms) {
      for (let restMs = ms; restMs > 0; restMs -= stepMs) {
        clock.advance(Math.min(stepMs, restMs));
        await rest();
      }
    },
    async due(probe) {
      await bed.pass(bed.report(probe).nextRunMs - clock.nowMs());
      return probe.lastCheck;
    },
    report: ({ row }) => runner.reports().find(({ name }) => name === row.name)!,
    series(start = '') {
      under.commit();
      return Object.fromEntries(Object.entries(under.shown()).filter(([key]) => key.startsWith(start)));
    },
  };
  return bed;
}

/** A bed whose only probe is due: its first check runs. */
export async function dueBed(probe: Scripted, options: BedOptions = {}): Promise<RunnerBed> {
  const bed = runnerBed(options);
  bed.configure(probe);
  await bed.due(probe);
  return bed;
}

/** Replaces the intakes of a bed, as a reload does. */
export function renewIntakes(bed: RunnerBed, globalTags: RawTags = {}): void {
  bed.intakes.close();
  bed.intakes = openIntakes(bed, globalTags);
}

export function probeDeps(
  clock: ManualClock = manualClock(),
  entries: Entry[] = [],
): ProbeDeps & { clock: ManualClock } {
  const log: Log = {
    write: (level, msg, fields = {}) => void entries.push({ level, msg, fields }),
    named: () => log,
  };
  return { clock, log, readings: { values: () => [] }, readSecret: async () => '' };
}
