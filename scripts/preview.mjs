// Draws dashboards/preview/*.png: each dashboard's own queries, asked of a real Prometheus that holds a simulated hour.
// Needs Debian's prometheus and chromium.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { root } from './setup.mjs';

const bundles = mkdtempSync(join(root, 'node_modules', '.preview-'));
try {
  const outfile = join(bundles, 'preview.mjs');
  await build({
    absWorkingDir: root,
    entryPoints: ['test/preview/preview.ts'],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
  });
  const { writePreviews } = await import(pathToFileURL(outfile).href);
  await writePreviews(join(root, 'dashboards'), process.env.CHROMIUM ?? '/usr/bin/chromium');
} finally {
  rmSync(bundles, { recursive: true, force: true });
}
