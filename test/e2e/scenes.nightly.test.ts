import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dashboards as names } from '../../src/monitoring/alert.ts';
import { hasScenes, panelsOf, readDashboard, startScenes } from '../scenes/drawn.ts';
import { startSimulated } from '../simulated/server.ts';
import { endSeconds } from '../simulated/time.ts';
import { folder } from './process.ts';
import { hasPrometheus, type Prometheus } from './prometheus.ts';

const rangeSeconds = 3300;

interface Seen {
  drawn: Record<string, boolean>;
  faults: string[];
}
const seenIn = (page: Page): Promise<Seen> => page.evaluate('window.seen');

/** Tables whose last column is out of sight. */
const cutTables = (page: Page): Promise<string[]> =>
  page.$$eval('[data-type=table]', (tables) =>
    tables
      .filter((table) => {
        const right = table.getBoundingClientRect().right;
        const headers = [...table.querySelectorAll('[role=columnheader]')];
        return (
          headers.length === 0 || headers.some((header) => header.getBoundingClientRect().right > right + 1)
        );
      })
      .map((table) => table.getAttribute('data-panel')!),
  );

describe.skipIf(!hasPrometheus || !hasScenes)('dashboards drawn by the libraries of Grafana', () => {
  const place = folder();
  let prometheus: Prometheus;
  let scenes: Awaited<ReturnType<typeof startScenes>>;
  beforeAll(async () => {
    prometheus = await startSimulated(place.path);
    scenes = await startScenes(place.path);
  });
  afterAll(async () => {
    await scenes?.end();
    await prometheus?.end();
    place.remove();
  });

  test.each(names)('%s: each panel has data, and each name is known', async (name) => {
    const { page, errors } = await scenes.draw(name, {
      ...{ prometheus: prometheus.address, from: endSeconds - rangeSeconds, to: endSeconds },
    });
    const titles = panelsOf(readDashboard(name))
      .map(({ title }) => title!)
      .sort();
    await page.evaluate('window.checkOverrides()');
    const { drawn, faults } = await seenIn(page);
    expect({ errors, faults, cut: await cutTables(page) }).toEqual({ errors: [], faults: [], cut: [] });
    expect(Object.keys(drawn).sort()).toEqual(titles);
    expect(titles.filter((title) => !drawn[title])).toEqual([]);
    await page.close();
  });
});
