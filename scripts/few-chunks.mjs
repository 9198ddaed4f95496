// esbuild splits shared code into one chunk for each set of entries that share it. The code that `svc-agent run` always loads
// would be in fifty files, each of which takes time to be found, read and linked.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

const command = (name) => `src/agent/cli/${name}.ts`;
const main = 'src/agent/main.ts';
const dispatch = command('dispatch');
const run = [main, dispatch, 'src/agent/agent.ts'];
/** Commands that load little, and commands that load nearly all of the agent. */
const light = ['status', 'incidents', 'maintenance', 'check', 'completion'].map(command);
const heavy = ['tap', 'sample-tests'].map(command);

/** The outputs that `path` imports, including itself. */
function closureOf(outputs, path, seen = new Set()) {
  if (seen.has(path)) return seen;
  seen.add(path);
  for (const { path: next, kind, external } of outputs[path].imports)
    if (!external && kind === 'import-statement') closureOf(outputs, next, seen);
  return seen;
}

/**
 * For each entry, further modules that it must import, so that the modules that `run` always loads are in three chunks: the
 * modules that the lightest commands load, too, the modules that most other commands load, and the rest. The modules with which
 * the program begins are in a further, small chunk.
 */
function sharedModules(outputs) {
  const entries = Object.values(outputs).flatMap(({ entryPoint }) =>
    entryPoint?.startsWith('src/') && !entryPoint.endsWith('-thread.ts') ? [entryPoint] : [],
  );
  const chunksOf = (of) =>
    new Set(
      of.flatMap((entry) => [
        ...closureOf(
          outputs,
          Object.keys(outputs).find((path) => outputs[path].entryPoint === entry),
        ),
      ]),
    );
  const filesOf = (chunks) => chunks.flatMap((chunk) => Object.keys(outputs[chunk].inputs));
  const most = entries.filter(
    (entry) => entry.startsWith('src/agent/cli/') && ![...light, ...heavy].includes(entry),
  );
  const shared = new Map(entries.map((entry) => [entry, []]));
  const left = chunksOf(run);
  const loadedWithout = new Set();
  for (const group of [chunksOf([main]), chunksOf([dispatch, ...light]), chunksOf(most), chunksOf(run)]) {
    const chunks = [...left].filter((chunk) => group.has(chunk));
    const files = filesOf(chunks).filter((file) => file.startsWith('src/') && !run.includes(file));
    for (const [entry, list] of shared) if (!loadedWithout.has(entry)) list.push(...files);
    for (const chunk of chunks) left.delete(chunk);
    for (const file of filesOf([...group])) loadedWithout.add(file);
  }
  return shared;
}

/** An esbuild plugin that builds the agent in few chunks; `metafile` is from the same build without it. */
export function fewChunks({ outputs }) {
  const shared = sharedModules(outputs);
  return {
    name: 'few-chunks',
    setup({ initialOptions, onLoad }) {
      const root = initialOptions.absWorkingDir;
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const modules = shared.get(relative(root, path));
        if (!modules) return undefined;
        const imports = modules.map((file) => `import ${JSON.stringify(`${root}/${file}`)};`);
        return { contents: [readFileSync(path, 'utf8'), ...imports].join('\n'), loader: 'ts' };
      });
    },
  };
}
