import { planBackups } from '../src/probes/backups/backups.ts';
import type { BackupOptions } from '../src/probes/backups/block.ts';
import type { BackupSource } from '../src/probes/backups/source-blocks.ts';
import { verifyBackup } from '../src/probes/backups/verify.ts';
import type { Finding, ProbeDeps, ProbeRow } from '../src/probes/probe.ts';
import type { StoreOptions } from '../src/probes/stores/store-options.ts';
import { bench, gauge, storeOn } from './store-probe.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** A backup of the database `persistence` of store `main`, which is due each day, and a log every 5 minutes. */
export function backupOptions(
  name: string,
  type: BackupOptions['type'],
  source: BackupSource,
  { level = 'full', ...over }: Partial<BackupOptions> & { level?: BackupOptions['integrity']['level'] } = {},
): BackupOptions {
  const everyMs = type === 'log' ? hourMs / 12 : dayMs;
  return {
    ...{ name, type, source, store: 'main', database: 'persistence', intervalMs: 60_000 },
    schedule: { everyMs, usualGraceMs: hourMs },
    objectives: { rpoMs: everyMs, rtoMs: dayMs },
    retention: { minCount: 1 },
    integrity: { level, minBytes: 1, maxShrink: 0.9, bytesPerSecond: 1e9, everyMs: 7 * dayMs },
    ...over,
  };
}

/** The dependencies of probes, which may be given the newest finding of each other probe. */
type Deps = (latest: NonNullable<ProbeDeps['latest']>) => Partial<ProbeDeps>;

/** The probes of rows. Each round checks them in their order, with what the rounds before left. */
export async function openProbes(rows: readonly ProbeRow[], deps: Deps) {
  const found = new Map<string, Finding>();
  const memories = new Map<string, string>();
  const own = { ...bench().deps, ...deps((name) => found.get(name)) };
  const probes = await Promise.all(rows.map(async (row) => [row.name, await row.open(own)] as const));
  return {
    async round() {
      for (const [name, probe] of probes) {
        const memory = memories.get(name);
        const finding = await probe.check(AbortSignal.timeout(60_000), memory && JSON.parse(memory));
        if (finding.remember !== undefined) memories.set(name, JSON.stringify(finding.remember));
        found.set(name, finding);
      }
      return found;
    },
    found: (name: string) => found.get(name)!,
    async close() {
      for (const [, probe] of probes) await probe.close?.();
    },
  };
}

interface Watched {
  backups: readonly BackupOptions[];
  state: string;
  stores?: readonly StoreOptions[];
}

/** The probes of backups, with real verifications. */
export const openBackups = ({ backups, state, stores = [storeOn(1)] }: Watched, deps: Deps) =>
  openProbes(planBackups({ backups, stores, stateDirectory: state }, { verify: verifyBackup }), deps);

/** What a check of a recovery found. */
export function recoveryOf(recovery: Finding) {
  const { reason, msg, details } = recovery;
  const chain = details?.chain as { recoveryPoint: string; links: { type: string }[] } | undefined;
  return {
    recovery: { reason, msg },
    ready: gauge(recovery, 'svc_recovery_ready'),
    recoveryPointMs: chain && Date.parse(chain.recoveryPoint),
    links: chain?.links.map(({ type }) => type) ?? [],
  };
}
