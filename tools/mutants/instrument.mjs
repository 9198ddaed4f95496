// Puts all mutants of some source files into their text, each behind a switch, with the mutators of Stryker. The sources are
// therefore loaded only once, and a mutant is chosen while they run.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Instrumenter } from '@stryker-mutator/instrumenter';

/**
 * Texts are not mutated: separate tables test what messages say. Objects and arrays that become empty are left out, too, because
 * the types already refuse most of them.
 */
const excludedMutations = ['StringLiteral', 'ObjectLiteral', 'ArrayDeclaration', 'Regex'];

const sourcesBelow = (path) =>
  statSync(path).isDirectory()
    ? readdirSync(path).flatMap((name) => sourcesBelow(join(path, name)))
    : path.endsWith('.ts') && !path.endsWith('.d.ts')
      ? [path]
      : [];

/**
 * The sources below a folder with the mutants that are tried: `codes` by path, and the `mutants` with id, file, line and
 * replacement.
 */
export async function instrument(path) {
  const silent = { debug() {}, info() {}, warn() {}, isDebugEnabled: () => false };
  const files = sourcesBelow(path).map((name) => ({
    name,
    mutate: true,
    content: readFileSync(name, 'utf8'),
  }));
  const options = { plugins: null, excludedMutations, ignorers: [], noHeader: false };
  const done = await new Instrumenter(silent).instrument(files, options);
  const mutants = done.mutants
    .filter(({ status, id }) => status !== 'Ignored' && Number(id) % Number(process.env.MUTANTS_EVERY) === 0)
    .map(({ id, fileName, location, mutatorName, replacement }) => ({
      id,
      fileName,
      line: location.start.line + 1,
      mutatorName,
      replacement,
    }));
  return { codes: new Map(done.files.map(({ name, content }) => [name, countingPasses(content)])), mutants };
}

/** The place in the code that asks which mutant is active. */
const asks = 'if (ns.activeMutant === id) {';

/** Makes the code count how often it passes any of its switches, so that an endless loop is noticed. */
function countingPasses(code) {
  const ends = "if (++ns.passes > ns.mostPasses) throw new Error('a loop without an end');";
  return code.replace(asks, () => `${ends}\n    ${asks}`);
}
