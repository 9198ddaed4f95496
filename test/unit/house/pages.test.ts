import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root, sourceFiles } from './imports.ts';

/** Everything in the project that a page may name, as paths with a slash in front. */
const tree = ['src', 'test', 'tools', 'bench', 'scripts', 'examples', 'docs', '.ci']
  .flatMap((folder) => [
    folder,
    ...(readdirSync(join(root, folder), { recursive: true }) as string[]).map((path) => `${folder}/${path}`),
  ])
  .map((path) => `/${path}`);
const code = sourceFiles('src')
  .map((file) => readFileSync(join(root, file), 'utf8'))
  .join('\n');

const pages = ['docs/internals.md', 'CONTRIBUTING.md'];
const textOf = (page: string) => readFileSync(join(root, page), 'utf8');

/** What commands of the project write, according to .gitignore. */
const written = textOf('.gitignore').split('\n');

/** Whether a path is a file of an example, or has a placeholder for a name. */
const isExample = (path: string) => /[A-Z]{4}|tracing\.mjs/.test(path);

/**
 * Texts with the form of a file or a folder of the project: with an extension in the whole page, without one only in backticks.
 */
function pathsIn(page: string): string[] {
  const files = [...textOf(page).matchAll(/[\w./-]+\.(?:ts|mjs|txt)\b/g)].map(([path]) =>
    path.replace(/^\.\//, ''),
  );
  const folders = [...textOf(page).matchAll(/`((?:[a-z][\w-]*\/)+[\w-]*)`/g)].map(([, path]) =>
    path!.replace(/\/$/, ''),
  );
  return [...new Set([...files, ...folders])].filter((path) => !isExample(path));
}

test.each(pages)('%s names files and folders that are there', (page) => {
  const missing = pathsIn(page).filter(
    (path) =>
      !existsSync(join(root, path)) &&
      !tree.some((there) => there.endsWith(`/${path}`)) &&
      !written.includes(`${path}/`),
  );
  expect(missing).toEqual([]);
});

test('docs/internals.md names functions that are there', () => {
  const text = textOf('docs/internals.md');
  const calls = [...text.matchAll(/(?:`(?:\w+\.)?|[A-Z]->>[A-Z]: )(\w+)\(/g)].map(([, name]) => name!);
  const members = [...text.matchAll(/`([A-Z]\w+)\.(\w+)`/g)].flatMap(([, type, name]) => [type!, name!]);
  const names = [...new Set([...calls, ...members])];
  expect(names.length).toBeGreaterThan(4);
  expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(code))).toEqual([]);
});

test('the page on the parts of src names every folder of it', () => {
  const text = textOf('CONTRIBUTING.md');
  const folders = tree.filter((path) => /^\/src\/[a-z-]+$/.test(path)).map((path) => `${path.slice(1)}/`);
  expect(folders.filter((folder) => !text.includes(folder))).toEqual([]);
});

test('docs/specification.md names tests that are there by their titles, and counts its statements', () => {
  const text = textOf('docs/specification.md');
  const links = [...text.matchAll(/\]\(\.\.\/(test\/[^)]+)\)(?: \(([^|]+?)\)(?=,? ))?/g)];
  const missing = links.filter(([, file, part = '']) => !textOf(file!).includes(part));
  expect(missing.map(([link]) => link)).toEqual([]);
  const rows = [...text.matchAll(/^\| (?!statement|---)(.*) \|(.*)\|(.*)\|$/gm)].map((row) =>
    row.slice(2).map((cell) => cell.trim() !== ''),
  );
  const count = (isHeld: boolean, isLimited: boolean) =>
    rows.filter(([held, but]) => held === isHeld && but === isLimited).length;
  expect(text).toContain(
    `${count(true, false)} statements hold, ${count(true, true)} hold with a limit that is named, and ${count(false, true)} are`,
  );
  expect(count(false, false)).toBe(0);
});
