import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dashboards } from '../../src/monitoring/alert.ts';
import type { DashboardJson, TargetJson } from '../../tools/grafana.ts';
import { readsService, unfedPanels } from '../../tools/unfed-panels.ts';
import { folder } from '../run-folder.ts';
import { ask, type View } from '../simulated/queries.ts';
import { stopsAtEnd } from '../test-end.ts';
import { root } from '../unit/house/imports.ts';
import { startPlayback } from './live/playback.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * Every query of the dashboards with the recorded pages of a real service: its metrics fill their panels, and the panels that
 * stay empty are those listed in the documentation.
 */

const stops = stopsAtEnd();

const read = (name: string): DashboardJson =>
  JSON.parse(readFileSync(join(root, `dashboards/${name}.json`), 'utf8'));

const legendOf = ({ legendFormat, refId }: TargetJson) =>
  ` (${(legendFormat || refId!).replace(/ ?\{.*/, '')})`;

test.skipIf(!hasPrometheus)('over the recorded pages only the listed panels are empty', async () => {
  const { path, remove } = folder();
  stops.push(remove);
  const { address } = await startPlayback(path, [], (stop) => stops.push(stop));
  const view: View = {
    ...{ rateInterval: '30s', range: '30s', interval: '3s', rangeSeconds: 6, stepSeconds: 3 },
    values: { cluster: 'dc1' },
    endSeconds: Date.now() / 1000,
  };
  const empty: string[] = [];
  for (const name of dashboards)
    for (const { title, targets = [] } of (read(name).panels ?? []).filter(({ type }) => type !== 'row'))
      for (const target of targets.filter(({ expr }) => readsService(expr!)))
        if ((await ask(address, target, view)).length === 0)
          empty.push(`${name}: ${title}${targets.length > 1 ? legendOf(target) : ''}`);
  expect(empty).toEqual(unfedPanels.map(({ panel }) => panel));
});
