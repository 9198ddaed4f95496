import { join } from 'node:path';
import { openSegmentReadings } from '../src/probes/backups/formats/segment-readings.ts';
import type { BinlogPlace, LogKind } from '../src/probes/backups/formats/segments.ts';
import { type LogEvidence, readSegments } from '../src/probes/backups/log-evidence.ts';
import { verifyBackup } from '../src/probes/backups/verify.ts';
import type { ArchivedLog } from '../src/probes/stores/store-report.ts';
import { newFolder } from './folder.ts';

/** Reads an archive with all of its segments, as a new agent finds it. `server` is what the store says about its log. */
export async function readArchive(
  directory: string,
  log: LogKind,
  nowMs: number,
  places: readonly BinlogPlace[] = [],
  server?: ArchivedLog,
): Promise<LogEvidence> {
  const readings = await openSegmentReadings(join(newFolder(), 'log.jsonl'));
  const source = { kind: 'segments', directory, log, settleMs: 0 } as const;
  for (;;) {
    let asked = false;
    const evidence = await readSegments(source, nowMs, {
      readings,
      places,
      server,
      verify: async (segments) => {
        asked = true;
        return verifyBackup({ path: directory, level: 'full', bytesPerSecond: 1e12, segments });
      },
    });
    if (!asked) return evidence;
  }
}
