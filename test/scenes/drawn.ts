import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { chromium, type Page } from 'playwright-core';
import type { DashboardJson } from '../../tools/grafana.ts';
import { mainFile } from '../e2e/process.ts';

/**
 * Draws the dashboards with Grafana's own libraries in Chromium, from a real Prometheus; `.ci/scenes` installs the libraries.
 * Grafana itself reads a whole dashboard; here each panel becomes one of its scenes, with its queries, variables,
 * transformations, units, mappings and overrides.
 */

// The previews are drawn from a bundle, in which this file is at another place.
const root = join(dirname(mainFile), '..');
const chromiumPath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const scenes = join(root, 'test/scenes');
/** Where `.ci/scenes` installs the libraries. */
export const libraries = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'svc-agent/scenes/node_modules',
);
export const hasScenes = existsSync(chromiumPath) && existsSync(libraries);
/** The width of the screen, which most laptops have, and for which the widths of columns are made. */
const width = 1440;
const gridRowPx = 38;
const controlsPx = 150;

export const readDashboard = (name: string): DashboardJson =>
  JSON.parse(readFileSync(join(root, `dashboards/${name}.json`), 'utf8'));

/** The panels of a dashboard that show something. */
export const panelsOf = ({ panels = [] }: DashboardJson) => panels.filter(({ type }) => type !== 'row');

/** Bundles the page as one script and one style sheet; returns them by their paths. */
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
        // Grafana's packages store services in variables of their modules, so the two forms of a package must not be mixed.
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

const html = `<!doctype html><link rel="stylesheet" href="/page.css"><style>* { box-sizing: border-box } button, th, [role=columnheader] { color: inherit }</style><main style="height: 100vh"></main>
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

/** The address of the series as host:port, and the time range that is shown, in seconds since the epoch. */
export interface Shown {
  prometheus: string;
  from: number;
  to: number;
}

/** Starts Chromium and what it requests; `outdir` is the nominal folder of the bundle, in which nothing is written. */
export async function startScenes(outdir: string) {
  const server = await serve(await bundled(outdir));
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    /** Opens a dashboard and waits until each panel has data, or for half a minute; `errors` are the errors of the page. */
    async draw(name: string, { prometheus, from, to }: Shown): Promise<{ page: Page; errors: string[] }> {
      const panels = panelsOf(readDashboard(name));
      const rows = Math.max(...panels.map(({ gridPos }) => gridPos!.y + gridPos!.h));
      const page = await browser.newPage({ viewport: { width, height: rows * gridRowPx + controlsPx } });
      const errors: string[] = [];
      page.on('pageerror', ({ message }) => errors.push(message));
      const query = { prometheus, dashboard: `/${name}.json`, from: String(from), to: String(to) };
      await page.goto(`${origin}/?${new URLSearchParams(query)}`);
      await page
        .waitForFunction(
          `Object.values(window.seen?.drawn ?? {}).filter(Boolean).length === ${panels.length}`,
        )
        .catch(() => undefined);
      return { page, errors };
    },
    async end() {
      await browser.close();
      server.close();
    },
  };
}
