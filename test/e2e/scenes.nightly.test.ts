import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dashboards as names } from '../../src/monitoring/alert.ts';
import { newFolder } from '../folder.ts';
import { hasScenes, libraries, panelsOf, readDashboard, startScenes } from '../scenes/drawn.ts';
import { startSimulated } from '../simulated/server.ts';
import { endSeconds } from '../simulated/time.ts';
import { root } from '../unit/house/imports.ts';
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

/**
 * A module that compiles only if the dashboard has the type that Grafana publishes, in which enumerations are types of their
 * own and not their values. Fields that only one kind of variable or data source has are not in that type.
 */
function typedModule(name: string): string {
  const { templating, annotations, ...dashboard } = readDashboard(name) as unknown as Record<
    'templating' | 'annotations',
    { list: object[] }
  >;
  const without = (list: { list: object[] }, others: RegExp) => ({
    list: list.list.map((one) =>
      Object.fromEntries(Object.entries(one).filter(([key]) => !others.test(key))),
    ),
  });
  const checked = {
    ...dashboard,
    templating: without(templating, /^(?:auto|auto_min|auto_count|definition)$/),
    annotations: without(annotations, /^(?:expr|step|titleFormat|textFormat|useValueForTime)$/),
  };
  return `import type { Dashboard } from '@grafana/schema';
type Plain<T> = unknown extends T ? unknown : T extends string ? \`\${T}\` : T extends number | boolean | null | undefined ? T
  : T extends (infer E)[] ? Plain<E>[] : { [K in keyof T]: Plain<T[K]> };
export const dashboard: Plain<Dashboard> = ${JSON.stringify(checked, null, 1)};
`;
}

test.skipIf(!hasScenes)('each dashboard has the schema that Grafana publishes', () => {
  const place = newFolder();
  for (const name of names) writeFileSync(join(place, `${name}.ts`), typedModule(name));
  const wrong = typedModule(names[0]!).replace('"timezone"', '"timeZone"');
  writeFileSync(join(place, 'wrong.ts'), wrong);
  const compilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: [] },
    ...{ module: 'esnext', moduleResolution: 'bundler', target: 'es2022' },
    paths: { '@grafana/schema': [join(libraries, '@grafana/schema/dist/types/index.d.ts')] },
  };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { stdout } = spawnSync(tsc, ['-p', place], { encoding: 'utf8', cwd: place });
  const faults = stdout.split('\n').filter((line) => /^\S/.test(line));
  expect(faults.map((line) => line.slice(0, 200))).toEqual([
    expect.stringMatching(/^wrong\.ts.*'"timeZone"' does not exist/),
  ]);
});

describe.skipIf(!hasPrometheus || !hasScenes)('dashboards drawn by the libraries of Grafana', () => {
  const place = newFolder(afterAll);
  let prometheus: Prometheus;
  let scenes: Awaited<ReturnType<typeof startScenes>>;
  beforeAll(async () => {
    prometheus = await startSimulated(place);
    scenes = await startScenes(place);
  });
  afterAll(async () => {
    await scenes?.end();
    await prometheus?.end();
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
