import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dashboards } from '../../src/monitoring/alert.ts';
import { startBackupStage } from '../e2e/live/backup-stage.ts';
import { type Shown, startScenes } from '../scenes/drawn.ts';
import { startSimulated } from '../simulated/server.ts';
import { endSeconds } from '../simulated/time.ts';
import { writePicture } from './picture.ts';

const rangeSeconds = 3300;

/** The dashboard that is drawn from a live run. */
const liveDashboard = 'backups';

/** Writes a picture of every other dashboard into `folder`, from data of a simulated hour. */
export async function writePreviews(folder: string): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'svc-agent-preview-'));
  const server = await startSimulated(place);
  const shown = { prometheus: server.address, from: endSeconds - rangeSeconds, to: endSeconds };
  try {
    await draw(
      folder,
      dashboards.filter((name) => name !== liveDashboard),
      shown,
    );
  } finally {
    await server.end();
    rmSync(place, { recursive: true, force: true });
  }
}

/** The number of rounds of the live run. */
const liveRounds = 8;
const liveRoundMs = 15_000;
const failingRound = 4;

/**
 * Writes the picture of the dashboard of backups from a live run of some minutes: real dumps and archived WAL of a real
 * PostgreSQL, which the built agent observes and a real Prometheus scrapes.
 */
export async function writeLivePreview(folder: string): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'svc-agent-preview-'));
  const from = Math.floor(Date.now() / 1000);
  const stage = await startBackupStage(place);
  try {
    for (let round = 0; round < liveRounds; round++) {
      await (round === failingRound ? stage.fail() : stage.backUp());
      await new Promise((resolve) => setTimeout(resolve, liveRoundMs));
    }
    const to = Math.floor(Date.now() / 1000);
    await draw(folder, [liveDashboard], { prometheus: stage.address, from, to });
  } finally {
    await stage.stop();
    rmSync(place, { recursive: true, force: true });
  }
}

async function draw(folder: string, names: readonly string[], shown: Shown): Promise<void> {
  const scenes = await startScenes(folder);
  try {
    for (const name of names) {
      const { page } = await scenes.draw(name, shown);
      await writePicture(page, join(folder, `${name}.webp`));
      await page.close();
    }
  } finally {
    await scenes.end();
  }
}
