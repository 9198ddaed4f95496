import type { Secret } from '../../core/access.ts';
import type { BackupType, IntegrityLevel } from '../../core/reasons.ts';
import type { LogKind } from './segments.ts';

/** An object store as backups lie in it; without keys the credentials come from the environment. */
export interface ObjectStoreOptions {
  endpoint?: string;
  region: string;
  bucket: string;
  prefix: string;
  accessKey?: Secret;
  secretKey?: Secret;
}

/** Where copies of backups go: exactly one of the two places. */
export interface OffsiteOptions {
  objectStore?: ObjectStoreOptions;
  directory?: string;
  maxLagMs: number;
}

/** Where the evidence of a backup is found; exactly one of these. */
export type BackupSource =
  | { kind: 'files'; directory: string; pattern: string; settleMs: number; sentinel?: string }
  | { kind: 'segments'; directory: string; log: LogKind; settleMs: number }
  | { kind: 'snapshot'; dataDirectory: string; keyspace: string }
  | { kind: 'configuration'; files: readonly string[]; directory: string }
  | {
      kind: 'command';
      command: readonly string[];
      format: 'pgbackrest' | 'walg' | 'barman' | 'json';
      timeoutMs: number;
    }
  | { kind: 'objectStore'; objectStore: ObjectStoreOptions; pattern: string }
  | { kind: 'heartbeat'; token: Secret }
  | { kind: 'runs' };

/** One entry of `backups`, defaults filled in; those of schedule, objectives and retention are the spec's by type. */
export interface BackupOptions {
  name: string;
  /** Name of an entry of `stores`; none for configuration. */
  store?: string;
  /** None for all databases of a store, and for configuration. */
  database?: 'persistence' | 'visibility';
  type: BackupType;
  source: BackupSource;
  /**
   * A success is due every so often; no interval: on every change. Without a grace of its own a backup may be late
   * by its usual duration and `usualGraceMs`.
   */
  schedule: { everyMs?: number; graceMs?: number; usualGraceMs: number };
  objectives: { rpoMs: number; rtoMs: number };
  /** How long backups are kept, and how many at least. No time: for ever. */
  retention: { keepMs?: number; minCount: number };
  integrity: { level: IntegrityLevel; minBytes: number; maxShrink: number; bytesPerSecond: number };
  offsite?: OffsiteOptions;
  /** How often the evidence is read. */
  intervalMs: number;
}
