import type { SeriesName } from '../probe.ts';

/** One archive as it is looked at. */
export interface ArchiveTarget {
  archive: 'history' | 'visibility';
  scheme: string;
  /** As configured. */
  uri: string;
  /** The service writes to it; else it is only read, as after a pause. */
  isWritten: boolean;
}

export function archiveUp({ archive, scheme }: ArchiveTarget): SeriesName {
  return { name: 'svc_archival_up', labels: { archive, scheme } };
}

/** The gauge of the newest object; none while that is not known. */
export function newestGauge({ archive, scheme }: ArchiveTarget, newestMs: number | undefined) {
  if (newestMs === undefined) return [];
  const name = 'svc_archival_newest_object_timestamp_seconds' as const;
  return [{ name, labels: { archive, scheme }, value: newestMs / 1000 }];
}

/** A moment for people; files may bear times that no calendar has. */
export function timeText(ms: number): string {
  const moment = new Date(ms);
  return Number.isNaN(moment.getTime()) ? `${ms} ms` : moment.toISOString();
}
