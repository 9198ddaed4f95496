import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DashboardJson, TargetJson } from '../../tools/grafana.ts';
import { newFolder } from '../folder.ts';
import { hasPostgres } from '../postgres.ts';
import { ask, type View } from '../simulated/queries.ts';
import { root } from '../unit/house/imports.ts';
import { until } from '../until.ts';
import { type BackupStage, startBackupStage } from './live/backup-stage.ts';
import { hasPrometheus } from './prometheus.ts';

// Tests every panel that shows backups, and their tile on the status page, with real backups that the built agent observes.

const isLive = hasPrometheus && hasPostgres;
const chromiumPath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const place = newFolder(afterAll);
let stage: BackupStage;

beforeAll(async () => {
  if (!isLive) return;
  stage = await startBackupStage(place);
  await stage.backUp();
  await stage.backUp();
  await stage.drill();
  await stage.fail();
});
afterAll(() => stage?.stop());

const targetsOf = (name: string, reads: RegExp): [string, TargetJson][] => {
  const { panels = [] }: DashboardJson = JSON.parse(
    readFileSync(join(root, 'dashboards', `${name}.json`), 'utf8'),
  );
  return panels.flatMap(({ title, targets = [] }) =>
    targets
      .filter(({ expr = '' }) => reads.test(expr))
      .map((target): [string, TargetJson] => [`${name}: ${title}: ${target.expr}`, target]),
  );
};

const targets = [
  ...targetsOf('backups', /./),
  ...targetsOf('dr', /svc_recovery|svc_rpo|svc_rto|svc_restore/),
  ...targetsOf('overview', /svc_backup|svc_recovery/),
];

test.skipIf(!isLive)('each query of their panels has data', async () => {
  expect(targets.length).toBeGreaterThan(20);
  let empty: string[] = [];
  await until('data of each query', async () => {
    const view: View = {
      ...{ rateInterval: '30s', range: '2m', interval: '1s', rangeSeconds: 60, stepSeconds: 1 },
      values: { cluster: 'dc1' },
      endSeconds: Date.now() / 1000,
    };
    empty = [];
    for (const [what, target] of targets)
      if ((await ask(stage.address, target, view)).length === 0) empty.push(what);
    return empty.length === 0;
  }).catch(() => {});
  expect(empty).toEqual([]);
});

test.skipIf(!isLive || !existsSync(chromiumPath))(
  'the tile of the status page shows each backup',
  async () => {
    const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
    try {
      const page = await browser.newPage();
      await page.goto(`http://${stage.agent.address('admin')}/`);
      const tile = page.locator('#backups');
      // Rows that are well are folded.
      const shown = async () => (await tile.textContent({ timeout: 60_000 })) ?? '';
      await until('each backup', async () => {
        const text = await shown();
        return ['main-full', 'main-wal', 'configuration'].every((name) => text.includes(name));
      });
      expect(await shown()).toMatch(/main.*persistence/s);
    } finally {
      await browser.close();
    }
  },
);
