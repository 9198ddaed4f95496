import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dashboards as names } from '../../src/monitoring/alert.ts';
import type { DashboardJson } from '../../tools/grafana.ts';
import { startSimulated } from '../simulated/server.ts';
import { endSeconds } from '../simulated/time.ts';
import { root } from '../unit/house/imports.ts';
import { folder } from './process.ts';
import { hasPrometheus, type Prometheus } from './prometheus.ts';

/**
 * The dashboards as Grafana's own libraries draw them in Chromium, from a real Prometheus: `.ci/scenes` installs them. A
 * dashboard of Grafana is read by Grafana itself; here each panel becomes one of its scenes, with its queries, variables,
 * transformations, units, mappings and overrides.
 */

const chromiumPath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const scenes = join(root, 'test/scenes');
const libraries = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'svc-agent/scenes/node_modules',
);
const isReady = hasPrometheus && existsSync(chromiumPath) && existsSync(libraries);
const rangeSeconds = 3300;
/** What most laptops have, and what the widths of columns are made for. */
const width = 1440;
const gridRowPx = 38;
const controlsPx = 150;

const read = (name: string): DashboardJson =>
  JSON.parse(readFileSync(join(root, `dashboards/${name}.json`), 'utf8'));

/** The page as one script and one style sheet, by their paths. */
async function bundled(outdir: string): Promise<ReadonlyMap<string, string>> {
  const { outputFiles } = await build({
    ...{
      absWorkingDir: scenes,
      entryPoints: ['page.jsx'],
      outdir,
      write: false,
      bundle: true,
      format: 'esm',
    },
    ...{ target: 'chrome120', logLevel: 'error', jsx: 'automatic', nodePaths: [libraries] },
    define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
    loader: { '.svg': 'text', '.ttf': 'empty' },
    plugins: [
      {
        // Grafana's packages keep services in variables of their modules: the two forms of a package must not be mixed.
        name: 'one form of each package',
        setup: ({ onResolve }) => {
          onResolve({ filter: /^@grafana\/(runtime|data|ui|schema|i18n)$/ }, ({ path }) => ({
            path: join(libraries, path, 'dist/esm/index.mjs'),
          }));
          onResolve({ filter: /^react-custom-scrollbars-2$/ }, ({ pluginData, ...at }) =>
            pluginData === 'own' ? undefined : { path: at.path, namespace: 'default-export' },
          );
        },
      },
      {
        name: 'default export of a CommonJS module',
        setup: ({ onLoad }) => {
          onLoad({ filter: /./, namespace: 'default-export' }, ({ path }) => ({
            contents: `export { Scrollbars, Scrollbars as default } from '${join(libraries, path)}/lib/index.js';`,
            resolveDir: libraries,
          }));
        },
      },
    ],
  });
  return new Map(
    outputFiles.map(({ path, text }) => [path.endsWith('.css') ? '/page.css' : '/page.js', text]),
  );
}

const html = `<!doctype html><link rel="stylesheet" href="/page.css"><style>* { box-sizing: border-box }</style><main style="height: 100vh"></main>
<script>window.grafanaBootData = { user: { timezone: 'utc', orgId: 1, locale: 'en' }, settings: { featureToggles: {} }, navTree: [] }</script>
<script type="module" src="/page.js"></script>`;

function serve(files: ReadonlyMap<string, string>): Promise<Server> {
  const server = createServer(({ url }, response) => {
    const { pathname } = new URL(url!, 'http://localhost');
    const dashboard = /^\/([\w-]+)\.json$/.exec(pathname)?.[1];
    if (dashboard) response.end(readFileSync(join(root, `dashboards/${dashboard}.json`)));
    else {
      response.setHeader(
        'content-type',
        { '/page.js': 'text/javascript', '/page.css': 'text/css' }[pathname] ?? 'text/html',
      );
      response.end(files.get(pathname) ?? html);
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

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

describe.skipIf(!isReady)('dashboards drawn by the libraries of Grafana', () => {
  const place = folder();
  let prometheus: Prometheus;
  let server: Server;
  let browser: Browser;
  beforeAll(async () => {
    prometheus = await startSimulated(place.path);
    server = await serve(await bundled(place.path));
    browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
    await prometheus?.end();
    place.remove();
  });

  test.each(names)('%s: each panel has data, and each name is known', async (name) => {
    const panels = read(name).panels!.filter(({ type }) => type !== 'row');
    const rows = Math.max(...panels.map(({ gridPos }) => gridPos!.y + gridPos!.h));
    const page = await browser.newPage({ viewport: { width, height: rows * gridRowPx + controlsPx } });
    const errors: string[] = [];
    page.on('pageerror', ({ message }) => errors.push(message));
    const query = new URLSearchParams({
      ...{ prometheus: prometheus.address, dashboard: `/${name}.json` },
      ...{ from: String(endSeconds - rangeSeconds), to: String(endSeconds) },
    });
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/?${query}`);
    const titles = panels.map(({ title }) => title!).sort();
    // What is still empty by then is named below.
    await page
      .waitForFunction(`Object.values(window.seen?.drawn ?? {}).filter(Boolean).length === ${titles.length}`)
      .catch(() => undefined);
    await page.evaluate('window.checkOverrides()');
    const { drawn, faults } = await seenIn(page);
    expect({ errors, faults, cut: await cutTables(page) }).toEqual({ errors: [], faults: [], cut: [] });
    expect(Object.keys(drawn).sort()).toEqual(titles);
    expect(titles.filter((title) => !drawn[title])).toEqual([]);
    await page.close();
  });
});
