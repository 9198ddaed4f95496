import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../..', import.meta.url));

/** One import of a source file; `to` is a path below src for our own files, otherwise the package's name. */
export interface Import {
  from: string;
  to: string;
  own: boolean;
}

/** Every TypeScript file below a folder of the project, as paths relative to the project. */
export function sourceFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

const specifier = /(?:\bfrom\s*|\bimport\s*\(?\s*)['"]([^'"]+)['"]/g;

/** The imports of a file. Comments and strings that only look like imports are few, and would only make the test stricter. */
export function importsOf(file: string, text: string): Import[] {
  return [...text.matchAll(specifier)].map(([, name]) => {
    const own = name!.startsWith('.');
    return { from: file, to: own ? normalize(join(dirname(file), name!)) : name!, own };
  });
}

export function allImports(): Import[] {
  return sourceFiles('src').flatMap((file) => importsOf(file, readFileSync(join(root, file), 'utf8')));
}
