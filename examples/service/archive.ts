import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from './random.ts';
import { taskLists } from './world.ts';

const archives = ['history', 'visibility'] as const;
export type ArchiveName = (typeof archives)[number];

/** The directory of each archive. */
type ArchiveDirectories = Readonly<Record<ArchiveName, string>>;

/** Where workflows that have ended are kept. */
export interface Archive {
  /** Keeps a workflow, if enough time has gone by since the last one. `nowMs` is since the epoch. */
  advance(nowMs: number): void;
}

const everyMs = 10_000;
/** Older files go, so that a demo that runs for days stays small. */
const kept = 100;

/** Makes the directories. Throws what the file system throws. */
export function openArchive(directories: ArchiveDirectories, random: Random): Archive {
  for (const name of archives) mkdirSync(directories[name], { recursive: true });
  let lastMs = Number.NEGATIVE_INFINITY;

  return {
    advance(nowMs) {
      if (nowMs - lastMs < everyMs) return;
      lastMs = nowMs;
      const { domain, workflowType, idPrefix } = random.weighted(taskLists);
      const workflow = {
        domain,
        workflowId: `${idPrefix}-${random.integer(1, 99_999)}`,
        runId: random.uuid(),
      };
      const closed = {
        ...workflow,
        workflowType,
        closeTime: new Date(nowMs).toISOString(),
        status: 'COMPLETED',
      };
      const events = ['WorkflowExecutionStarted', 'WorkflowExecutionCompleted'];
      keep(directories.visibility, nowMs, closed);
      keep(directories.history, nowMs, { ...workflow, events });
    },
  };
}

function keep(directory: string, nowMs: number, content: object) {
  writeFileSync(join(directory, `${nowMs}.json`), `${JSON.stringify(content)}\n`);
  for (const name of readdirSync(directory).sort().slice(0, -kept)) rmSync(join(directory, name));
}
