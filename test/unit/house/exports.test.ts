import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importsOf, root, sourceFiles } from './imports.ts';

const folders = ['src', 'tools', 'test', 'bench', 'examples'];
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
/** Modules that load bundles and set-ups by path. */
const loaders = ['generate', 'preview', 'mutants', 'bench'].map((name) => read(`scripts/${name}.mjs`));
const isTest = (file: string): boolean => /^(?:test|bench)\//.test(file);
const mentions = (text: string, name: string): number =>
  text.match(new RegExp(`\\b${name}\\b`, 'g'))?.length ?? 0;

/** The exports that no file which imports theirs mentions, and the exports of the program that only tests use. */
function unused(texts: ReadonlyMap<string, string>): string[] {
  const importers = new Map<string, string[]>();
  for (const [file, text] of texts)
    for (const { to, own } of importsOf(file, text))
      if (own) importers.set(to, [...(importers.get(to) ?? []), file]);
  const isUsed = (file: string, name: string, text: string): boolean => {
    const users = (importers.get(file) ?? []).filter((other) => mentions(texts.get(other)!, name));
    if (loaders.some((loader) => mentions(loader, name))) return true;
    return (
      users.some((user) => isTest(file) || !isTest(user)) || (users.length > 0 && mentions(text, name) > 1)
    );
  };
  return [...texts].flatMap(([file, text]) =>
    [...text.matchAll(/^export (?:async )?(?:const|function\*?|class|interface|type|let) (\w+)/gm)]
      .filter(([, name]) => !isUsed(file, name!, text))
      .map(([, name]) => `${file}: ${name}`),
  );
}

/** Tables of the program that tests compare with other tables. */
const exceptions = ['src/agent/verdict/causes.ts: canCause', 'src/agent/verdict/kinds.ts: unjudged'];

test('another file uses each export', () => {
  const files = folders.flatMap(sourceFiles).filter((file) => file !== 'test/run-folder.ts');
  const found = unused(new Map(files.map((file) => [file, read(file)])));
  expect(found.filter((each) => !exceptions.includes(each) && !each.startsWith('tools/'))).toEqual([]);
});

test.each([
  ['that nobody imports', "import './a.ts';", ['src/a.ts: f']],
  ['that another file uses', "import { f } from './a.ts';", []],
])('the check itself: an export %s', (_, text, found) => {
  const texts = new Map([
    ['src/a.ts', 'export const f = 1;'],
    ['src/b.ts', text],
  ]);
  expect(unused(texts)).toEqual(found);
});

test('the check itself: an export that only a test uses', () => {
  const user = "import { f } from '../src/a.ts';";
  const used = (text: string) =>
    unused(
      new Map([
        ['src/a.ts', text],
        ['test/b.ts', user],
      ]),
    ).length === 0;
  expect([used('export const f = 1;'), used('export const f = 1; const g = f;')]).toEqual([false, true]);
});
