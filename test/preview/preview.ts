import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import type { DashboardJson, PanelJson } from '../../tools/grafana.ts';
import { ask, type View } from '../simulated/queries.ts';
import { startSimulated } from '../simulated/server.ts';
import { endSeconds } from '../simulated/time.ts';
import type { Shown } from './drawing.ts';
import { page, pageWidth } from './page.ts';
import { fewerColours } from './png.ts';

const view: View = {
  rateInterval: '2m',
  range: '55m',
  interval: '30s',
  rangeSeconds: 3300,
  stepSeconds: 30,
  values: {},
};

/** Writes a picture of each dashboard in `folder` into its folder `preview`, from data of a simulated hour. */
export async function writePreviews(folder: string, chromiumPath: string): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'svc-agent-preview-'));
  const server = await startSimulated(place);
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
  try {
    mkdirSync(join(folder, 'preview'), { recursive: true });
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
      const dashboard = JSON.parse(readFileSync(join(folder, file), 'utf8')) as DashboardJson;
      const answers = await answersOf(dashboard, server.address);
      const { html, height } = page(dashboard, answers, {
        from: endSeconds - view.rangeSeconds,
        to: endSeconds,
      });
      const tab = await browser.newPage({ viewport: { width: pageWidth, height: Math.ceil(height) } });
      await tab.setContent(html);
      const path = join(folder, 'preview', file.replace(/json$/, 'png'));
      writeFileSync(path, fewerColours(await tab.screenshot()));
      await tab.close();
      process.stdout.write(`written: ${path}\n`);
    }
  } finally {
    await browser.close();
    await server.end();
    rmSync(place, { recursive: true, force: true });
  }
}

async function answersOf(dashboard: DashboardJson, address: string): Promise<Map<PanelJson, Shown[]>> {
  const answers = new Map<PanelJson, Shown[]>();
  for (const panel of dashboard.panels ?? [])
    answers.set(
      panel,
      await Promise.all(
        (panel.targets ?? []).map(async (target) => ({ target, series: await ask(address, target, view) })),
      ),
    );
  return answers;
}
