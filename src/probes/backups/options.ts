import type { Secret } from '../../core/access.ts';

export const backupTypes = ['full', 'incremental', 'log', 'config'] as const;
export type BackupType = (typeof backupTypes)[number];

/** An object store as backups lie in it. */
export interface ObjectStoreOptions {
  endpoint?: string;
  region: string;
  bucket: string;
  prefix: string;
  accessKey?: Secret;
  secretKey?: Secret;
}

/** Where the evidence of a backup is found; exactly one of these. */
export type BackupSource =
  | { kind: 'files'; directory: string; pattern: string; settleMs: number }
  | { kind: 'command'; command: readonly string[]; format: 'pgbackrest' | 'json'; timeoutMs: number }
  | { kind: 'heartbeat'; token: Secret }
  | { kind: 'objectStore'; objectStore: ObjectStoreOptions; pattern: string };

/** One entry of `backups`, defaults filled in; those of `schedule` and `retention` are the spec's table by type. */
export interface BackupOptions {
  name: string;
  /** Name of an entry of `stores`; none for configuration. */
  store?: string;
  /** `persistence` or `visibility`; none for all of a store, and for configuration. */
  database?: 'persistence' | 'visibility';
  type: BackupType;
  source: BackupSource;
  /** A success is due every so often, and late after the grace. No interval: on change. */
  schedule: { everyMs?: number; graceMs: number };
  /** How long backups are kept, and how many at least. No time: for ever. */
  retention: { keepMs?: number; minCount: number };
  integrity: { level: 'none' | 'header' | 'checksum' | 'full'; minBytes: number; maxShrink: number };
  offsite?: { objectStore: ObjectStoreOptions; maxLagMs: number };
}
