import type { IntegrityResult } from '../../core/reasons.ts';
import type { Artifact, Evidence } from './evidence.ts';

export const asList = (value: unknown): Record<string, unknown>[] => {
  if (!Array.isArray(value)) throw new Error('not a list');
  return value as Record<string, unknown>[];
};

export const asNumber = (value: unknown): number => {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Error('not a number');
  return value;
};

export const asText = (value: unknown): string => {
  if (typeof value !== 'string' || value === '') throw new Error('not a text');
  return value;
};

/** A time: RFC 3339, or any date that names its zone. */
export const asTime = (value: unknown): number => {
  if (typeof value === 'number') return value * 1000;
  const ms = Date.parse(asText(value));
  if (Number.isNaN(ms)) throw new Error('not a time');
  return ms;
};

export interface Reported {
  id: string;
  startMs: number;
  endMs: number;
  sizeBytes: number;
  verified: IntegrityResult;
  method: Artifact['method'];
  parent?: string;
  wal?: Artifact['wal'];
  walStart?: string;
  systemId?: string;
}

/** The artifact for a reported backup. A tool knows when it began a backup, so its report is evidence for that. */
export const artifactOf = ({ systemId, ...reported }: Reported): Artifact => ({
  ...reported,
  fingerprint: String(reported.endMs),
  content: { startMs: reported.startMs, ...(systemId !== undefined && { systemId }) },
});

/** Throws if a report is of several servers: a backup of one of them would count for the store of another. */
export function ofOneServer(names: readonly unknown[], what: string, how: string): void {
  const distinct = [...new Set(names.map(String))];
  if (distinct.length > 1) throw new Error(`it has the ${what} ${distinct.join(', ')}; select one ${how}`);
}

export const evidenceOf = (artifacts: Artifact[], rest: Partial<Evidence> = {}): Evidence => ({
  artifacts: artifacts.sort((one, other) => one.startMs - other.startMs),
  unfinished: [],
  failures: [],
  ...rest,
});
