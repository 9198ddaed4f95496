import type { Finding, Probe, ProbeDeps, ProbeRow } from '../src/probes/probe.ts';
import type { MeasureSpace } from '../src/probes/stores/free-space.ts';
import { createStoreServer } from '../src/probes/stores/store-connections.ts';
import type { StoreOptions, StoreRole } from '../src/probes/stores/store-options.ts';
import { createStoreProbe } from '../src/probes/stores/store-probe.ts';
import type { StoreFault, StoreKind, StoreReport, StoreTarget } from '../src/probes/stores/store-report.ts';
import { planStores } from '../src/probes/stores/stores.ts';
import { type ManualClock, manualClock } from './clock.ts';

/** The configuration of one store on loopback. */
export function storeOn(port: number, over: Partial<StoreOptions> = {}): StoreOptions {
  return {
    name: 'main',
    kind: 'postgres',
    address: `127.0.0.1:${port}`,
    credentials: 'own',
    databases: { persistence: 'postgres' },
    schema: {},
    accept: {},
    intervalMs: 30_000,
    timeoutMs: 20_000,
    ...over,
  };
}

interface Bench {
  clock: ManualClock;
  logged: { level: string; msg: string; fields: unknown }[];
  deps: ProbeDeps;
}

/** The dependencies of a probe, with a clock that stands still and a log whose entries are collected. */
export function bench(secret: ProbeDeps['readSecret'] = async (text) => String(text)): Bench {
  const clock = manualClock();
  const logged: Bench['logged'] = [];
  const log: ProbeDeps['log'] = {
    write: (level, msg, fields) => void logged.push({ level, msg, fields }),
    named: () => log,
  };
  return { clock, logged, deps: { clock, log, readSecret: secret, readings: { values: () => [] } } };
}

/** One check of the first database of a store, through its row of the plan. */
export async function checkStore(
  options: StoreOptions,
  {
    recalled,
    deps = bench().deps,
    signal,
  }: { recalled?: unknown; deps?: ProbeDeps; signal?: AbortSignal } = {},
): Promise<Finding> {
  const [row] = planStores({ stores: [options] }) as [ProbeRow];
  const probe = await row.open(deps);
  try {
    return await probe.check(signal ?? AbortSignal.timeout(options.timeoutMs), recalled);
  } finally {
    await probe.close?.();
  }
}

/** A kind of store that returns given reports, over connections that cost nothing. */
export function kindOf(
  report: (target: StoreTarget, signal: AbortSignal) => Promise<Partial<StoreReport>>,
  faultOf: (thrown: unknown) => StoreFault = (thrown) => ({ reason: 'query_failed', msg: String(thrown) }),
): StoreKind {
  return {
    async connect(target, _, __, signal) {
      let last: Partial<StoreReport> = {};
      return {
        get tlsNotAfterMs() {
          return last.tlsNotAfterMs;
        },
        async poll() {
          last = await report(target, signal);
          const server = { serverVersion: 'any 1', checks: [], ...last };
          return { server, database: { checks: [] }, roundTripMs: 1 };
        },
        close: () => Promise.resolve(),
      };
    },
    faultOf,
  };
}

/** The probe of one database with a kind that a test created. */
export function probeOf(
  options: StoreOptions,
  kind: StoreKind,
  deps: Pick<ProbeDeps, 'readSecret' | 'clock' | 'log'> & { measureSpace?: MeasureSpace },
  role: StoreRole = 'persistence',
): Probe {
  return createStoreProbe(options, role, {
    ...deps,
    kind,
    server: createStoreServer(options, kind, deps.clock),
  });
}

/** The value of a finding's gauge by the label that it has in addition to the store's own; undefined if there is none. */
export function gauge({ gauges = [] }: Finding, name: string, own: Readonly<Record<string, string>> = {}) {
  return gauges.find(
    (sample) =>
      sample.name === name && Object.entries(own).every(([label, value]) => sample.labels[label] === value),
  )?.value;
}

/** Whether each check of a finding holds, as `/probes` shows it. */
export function checksOf({ details }: Finding): Record<string, boolean | 'unknown'> {
  const checks = (details?.checks ?? []) as { check: string; holds: boolean | 'unknown' }[];
  return Object.fromEntries(checks.map(({ check, holds }) => [check, holds]));
}

/** Every check that is shown as a gauge. */
export function checkGauges({ gauges = [] }: Finding): Record<string, number> {
  const samples = gauges.filter(({ name }) => name === 'svc_store_check_ok');
  return Object.fromEntries(samples.map(({ labels, value }) => [labels.check, value]));
}
