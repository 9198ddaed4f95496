// Draws dashboards/preview/*.webp and docs/images/status-*.webp. For each dashboard its own queries are sent to a real Prometheus
// that contains a simulated hour; for the dashboard of backups, this Prometheus has scraped the built agent beside real backups
// of a PostgreSQL for two minutes. The status page is drawn after four simulated hours. Needs `npm run build`, Debian's
// prometheus, postgresql and chromium, and for dashboards the libraries that .ci/scenes installs. `npm run preview -- backups`
// draws the dashboard of backups alone; `dashboards` and `status` draw the other dashboards and the status page alone.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle, root } from './setup.mjs';

const chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';
const wanted = process.argv.slice(2);
mkdirSync(join(root, 'dist'), { recursive: true });
const bundles = mkdtempSync(join(root, 'dist', '.preview-'));
try {
  await bundle({
    entryPoints: ['test/preview/preview.ts', 'test/preview/status.ts'],
    outdir: bundles,
  });
  const load = (name) => import(pathToFileURL(join(bundles, `${name}.mjs`)).href);
  if (wanted.length === 0 || wanted.includes('dashboards'))
    await (await load('preview')).writePreviews(join(root, 'dashboards/preview'));
  if (wanted.length === 0 || wanted.includes('backups'))
    await (await load('preview')).writeLivePreview(join(root, 'dashboards/preview'));
  if (wanted.length === 0 || wanted.includes('status'))
    await (await load('status')).writeStatusPictures(
      process.env.STATUS_FOLDER ?? join(root, 'docs', 'images'),
      chromium,
    );
} finally {
  rmSync(bundles, { recursive: true, force: true });
}
