import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import type { DashboardJson, PanelJson } from '../../tools/grafana.ts';
import { startBackupStage } from '../e2e/live/backup-stage.ts';
import { ask, type View } from '../simulated/queries.ts';
import { startSimulated } from '../simulated/server.ts';
import { endSeconds } from '../simulated/time.ts';
import type { Shown } from './drawing.ts';
import { page, pageWidth } from './page.ts';
import { writePicture } from './picture.ts';

const view: View = {
  rateInterval: '2m',
  range: '55m',
  interval: '30s',
  rangeSeconds: 3300,
  stepSeconds: 30,
  values: {},
};

/** The dashboard that is drawn from a live run. */
const liveDashboard = 'backups.json';

/** Writes a picture of each other dashboard in `folder` into its folder `preview`, from data of a simulated hour. */
export async function writePreviews(folder: string, chromiumPath: string): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'svc-agent-preview-'));
  const server = await startSimulated(place);
  try {
    const files = readdirSync(folder).filter((name) => name.endsWith('.json') && name !== liveDashboard);
    await draw({ origin: 'simulated data', folder, files, chromiumPath }, server.address, view);
  } finally {
    await server.end();
    rmSync(place, { recursive: true, force: true });
  }
}

/** How long the live run takes, and what happens in each of its rounds. */
const liveRounds = 8;
const liveRoundMs = 15_000;
const failingRound = 4;

/**
 * Writes the picture of the dashboard of backups from a live run of some minutes: real dumps and archived WAL of a real
 * PostgreSQL, which the built agent observes and a real Prometheus scrapes.
 */
export async function writeLivePreview(folder: string, chromiumPath: string): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'svc-agent-preview-'));
  const beganMs = Date.now();
  const stage = await startBackupStage(place);
  try {
    for (let round = 0; round < liveRounds; round++) {
      await (round === failingRound ? stage.fail() : stage.backUp());
      await new Promise((resolve) => setTimeout(resolve, liveRoundMs));
    }
    const rangeSeconds = Math.ceil((Date.now() - beganMs) / 1000);
    await draw({ origin: 'a live run', folder, files: [liveDashboard], chromiumPath }, stage.address, {
      ...{ rateInterval: '20s', range: `${rangeSeconds}s`, interval: '2s', rangeSeconds, stepSeconds: 2 },
      values: {},
      endSeconds: Math.floor(Date.now() / 1000),
    });
  } finally {
    await stage.stop();
    rmSync(place, { recursive: true, force: true });
  }
}

interface Pictures {
  origin: string;
  folder: string;
  files: readonly string[];
  chromiumPath: string;
}

async function draw(
  { origin, folder, files, chromiumPath }: Pictures,
  address: string,
  of: View,
): Promise<void> {
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
  const to = of.endSeconds ?? endSeconds;
  try {
    mkdirSync(join(folder, 'preview'), { recursive: true });
    for (const file of files) {
      const dashboard = JSON.parse(readFileSync(join(folder, file), 'utf8')) as DashboardJson;
      const answers = await answersOf(dashboard, address, of);
      const { html, height } = page(dashboard, answers, { from: to - of.rangeSeconds, to, origin });
      const tab = await browser.newPage({ viewport: { width: pageWidth, height: Math.ceil(height) } });
      await tab.setContent(html);
      await writePicture(tab, join(folder, 'preview', file.replace(/json$/, 'webp')));
      await tab.close();
    }
  } finally {
    await browser.close();
  }
}

async function answersOf(
  dashboard: DashboardJson,
  address: string,
  of: View,
): Promise<Map<PanelJson, Shown[]>> {
  const answers = new Map<PanelJson, Shown[]>();
  for (const panel of dashboard.panels ?? [])
    answers.set(
      panel,
      await Promise.all(
        (panel.targets ?? []).map(async (target) => ({ target, series: await ask(address, target, of) })),
      ),
    );
  return answers;
}
