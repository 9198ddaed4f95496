// Collects the licence notices of the packages whose code is in dist/, because their licences demand that they are passed on.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const packageOf = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//;
const noticeFile = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i;

/** The folders of the packages whose code is in an output of esbuild, relative to the root. */
export function bundledPackages(metafiles) {
  const folders = new Set();
  for (const { outputs } of metafiles)
    for (const { inputs } of Object.values(outputs))
      for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
        const [, folder] = packageOf.exec(path) ?? [];
        if (folder !== undefined && bytesInOutput > 0) folders.add(folder);
      }
  return folders;
}

/** Name and version of a package, its licence, and its text. */
function noticeOf(folder) {
  const { name, version, license, author, homepage } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  );
  const files = readdirSync(folder).filter(
    (file) => noticeFile.test(file) && !/\.(?:js|ts|json)$/.test(file),
  );
  const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim());
  const by = typeof author === 'string' ? author : author?.name;
  // Some packages state their licence and their author, and ship no text.
  const text = texts.join('\n\n') || [by && `Copyright ${by}`, homepage].filter(Boolean).join('\n');
  return { title: `${name} ${version} (${license ?? 'licence below'})`, text };
}

/** One text with all notices, in the order of the names; packages with the same text share it. */
export function notices(root, metafiles) {
  const titlesOf = new Map();
  for (const folder of [...bundledPackages(metafiles)].sort()) {
    const { title, text } = noticeOf(join(root, folder));
    titlesOf.set(text, [...new Set([...(titlesOf.get(text) ?? []), title])]);
  }
  const line = `\n\n${'-'.repeat(78)}\n\n`;
  const parts = [...titlesOf].map(([text, titles]) => `${titles.join('\n')}\n\n${text}`);
  const head = 'svc-agent is under the Apache License 2.0. Its files hold code of these packages.';
  return `${[head, ...parts].join(line)}\n`;
}
