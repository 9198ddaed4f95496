// An ES module that imports one of Node's own modules gets a copy of it, for which Node reads every property: also properties
// that are computed when they are read, such as all root certificates as text, and properties that load further modules. The
// agent would keep 1 MiB that it never uses. So the bundles take from Node's own modules only what they name.
import { readFileSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';

/** An import in a bundle without white space: its default, all of it, or names. */
const statement = /(?<=^|[;}\n])import(?: ([\w$]+) |\*as ([\w$]+) |\{([^}]*)\})from"([^"]+)";\n?/g;

/**
 * The code of a bundle, in which imports of Node's own modules are constants at its beginning; and the number of these constants.
 */
function withConstants(code) {
  const constants = [];
  const rest = code.replace(statement, (whole, byDefault, all, names, path) => {
    if (!isBuiltin(path)) return whole;
    const to = names === undefined ? (byDefault ?? all) : `{${names.replaceAll(' as ', ':')}}`;
    constants.push(`const ${to}=globalThis.process.getBuiltinModule(${JSON.stringify(path)});`);
    return '';
  });
  const [, interpreter = '', body] = /^(#![^\n]*\n)?(.*)$/s.exec(rest);
  return { code: `${interpreter}${constants.join('')}\n${body}`, count: constants.length };
}

/** An esbuild plugin for builds of ES modules. */
export const builtinModules = {
  name: 'builtin-modules',
  setup({ initialOptions: { absWorkingDir }, onEnd }) {
    onEnd(({ metafile: { outputs } }) => {
      for (const [path, { imports }] of Object.entries(outputs)) {
        const file = join(absWorkingDir, path);
        const { code, count } = withConstants(readFileSync(file, 'utf8'));
        const imported = imports.filter(({ kind, path }) => kind === 'import-statement' && isBuiltin(path));
        if (count !== imported.length)
          throw new Error(
            `${path}: imports of Node's modules: found ${count}, esbuild wrote ${imported.length}`,
          );
        writeFileSync(file, code);
      }
    });
  },
};
