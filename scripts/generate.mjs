// Writes the generated files: rules/, the same rules for Kubernetes, dashboards/*.json and docs/reference/, and the cases of
// `promtool test rules`, which are not committed: rules/tests/. With --check it prints which of the committed files differ, and
// writes nothing.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle, root } from './setup.mjs';

const check = process.argv.includes('--check');
/** Folders of generated files, and which files in them are generated. */
const folders = [
  ['rules', check ? /^rules\/[^/]+$/ : /./],
  ['dashboards', /^dashboards\/[^/]+\.json$/],
  ['deploy/kubernetes/monitoring', /\/rules\.yaml$/],
  ['docs/reference', /\.md$/],
];

const bundles = mkdtempSync(join(root, 'node_modules', '.generate-'));
let wanted;
try {
  await bundle({
    entryPoints: { shipped: 'tools/shipped.ts', reference: 'tools/reference.ts' },
    outdir: bundles,
  });
  const load = (name) => import(pathToFileURL(join(bundles, `${name}.mjs`)).href);
  const { ruleFiles, caseFiles, deployedRules, dashboardFiles } = await load('shipped');
  const { referenceFiles } = await load('reference');
  const committed = [...ruleFiles(), deployedRules(), ...dashboardFiles(), ...(await referenceFiles())];
  wanted = new Map(check ? committed : [...committed, ...caseFiles()]);
} finally {
  rmSync(bundles, { recursive: true, force: true });
}

const present = folders.flatMap(([folder, generated]) => {
  mkdirSync(join(root, folder), { recursive: true });
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .filter((path) => generated.test(path));
});
const textOf = (path) => (present.includes(path) ? readFileSync(join(root, path), 'utf8') : undefined);
const changed = [...wanted].filter(([path, text]) => textOf(path) !== text).map(([path]) => path);
const extra = present.filter((path) => !wanted.has(path));

for (const path of changed) {
  process.stdout.write(`${check ? 'differs: ' : 'written: '}${path}\n`);
  if (check) continue;
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), wanted.get(path));
}
for (const path of extra) {
  process.stdout.write(`${check ? 'not generated: ' : 'removed: '}${path}\n`);
  if (!check) rmSync(join(root, path));
}
process.exitCode = check && changed.length + extra.length > 0 ? 1 : 0;
