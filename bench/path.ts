/**
 * Counts how many files and functions of `src` a log line, a datagram and a new series pass: V8's precise coverage of the agent
 * while it gets one of these inputs, minus what runs while it gets nothing. Also counts the files and lines of `src`.
 * `npm run bench -- path [CHECKOUT]`, default: this checkout.
 */
import { createSocket } from 'node:dgram';
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { textAt } from './arguments.ts';
import { configIn, newPlace, pause, startAgent, root as thisRoot } from './process.ts';

const root = resolve(textAt(0) ?? thisRoot);
const place = newPlace('path');
const bundle = join(place, 'dist', 'main.mjs');
const log = join(place, 'history.log');
const coverage = join(place, 'coverage.json');

/** Code that runs in the agent: at each SIGUSR2 it writes what was called since the last signal. */
const preload = `
import { Session } from 'node:inspector';
import { renameSync, writeFileSync } from 'node:fs';
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
process.on('SIGUSR2', () =>
  session.post('Profiler.takePreciseCoverage', (_, { result }) => {
    writeFileSync(process.env.COVERAGE + '.new', JSON.stringify(result.find(({ url }) => url.endsWith('/main.mjs')) ?? {}));
    renameSync(process.env.COVERAGE + '.new', process.env.COVERAGE);
  }),
);
`;

interface Called {
  functions?: { functionName: string; ranges: { startOffset: number; count: number }[] }[];
}

/** The position at which each file begins in the bundle, from esbuild's comments. */
function filesIn(text: string): { at: number; file: string }[] {
  return [...text.matchAll(/^\/\/ (\S+\.(?:ts|js|mjs|cjs))$/gm)].map((found) => ({
    at: found.index,
    file: found[1]!,
  }));
}

/** Functions of `src` that were called since the last time, as `file function@offset`. */
async function called(pid: number, files: ReturnType<typeof filesIn>): Promise<Set<string>> {
  rmSync(coverage, { force: true });
  process.kill(pid, 'SIGUSR2');
  for (let waited = 0; !existsSync(coverage) && waited < 500; waited++) await pause(20);
  const { functions = [] } = JSON.parse(readFileSync(coverage, 'utf8')) as Called;
  return new Set(
    functions.flatMap(({ functionName, ranges: [range] }) => {
      const file = files.findLast(({ at }) => at <= range!.startOffset)?.file ?? '';
      const isOurs = range!.count > 0 && range!.startOffset > 0 && /^(?:\.\.\/)*(?:\S*\/)?src\//.test(file);
      return isOurs
        ? [`${file.replace(/^.*?src\//, 'src/')} ${functionName || '(anonymous)'}@${range!.startOffset}`]
        : [];
    }),
  );
}

const entry = (logger: string, n: number) =>
  `${JSON.stringify({ level: 'info', ts: new Date().toISOString(), logger, service: 'history', msg: `done ${n}` })}\n`;

function sourceSize(): string {
  const files = (readdirSync(join(root, 'src'), { recursive: true }) as string[]).filter((file) =>
    file.endsWith('.ts'),
  );
  const lines = files.reduce(
    (n, file) => n + readFileSync(join(root, 'src', file), 'utf8').split('\n').length - 1,
    0,
  );
  return `${files.length} files, ${lines} lines`;
}

for (const name of ['node_modules', 'vocabularies', 'package.json'])
  symlinkSync(join(root, name), join(place, name));
writeFileSync(join(place, 'preload.mjs'), preload);
await build({
  entryPoints: [join(root, 'src/agent/main.ts')],
  absWorkingDir: root,
  outfile: bundle,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  logLevel: 'error',
});
const files = filesIn(readFileSync(bundle, 'utf8'));
writeFileSync(log, '');
const config = configIn(
  place,
  `admin: ~
services: {history: {statsd: "127.0.0.1:28127", logs: {paths: ["${log}"], startAt: beginning}}}
`,
);
const { pid } = await startAgent(config, {
  main: bundle,
  flags: ['--import', join(place, 'preload.mjs')],
  env: { ...process.env, COVERAGE: coverage },
});
const socket = createSocket('udp4');
const datagram = (line: string) => socket.send(line, 28_127, '127.0.0.1');
let lines = 0;
const steps: [string, () => void][] = [
  ['a log line', () => appendFileSync(log, entry('task-queue', lines++))],
  ['a log line of a new series', () => appendFileSync(log, entry(`logger-${lines}`, lines++))],
  ['a datagram', () => datagram('requests:1|c|#domain:a')],
  ['a datagram of a new series', () => datagram(`requests:1|c|#domain:new-${lines++}`)],
];
const settleMs = 2500;
// Known series come first; then what runs with nothing to do is recorded, over a longer time than any of the steps.
for (const [, act] of [...steps, ...steps]) {
  act();
  await pause(settleMs / 2);
}
await called(pid, files);
await pause(3 * settleMs);
const idle = await called(pid, files);
console.log(`${sourceSize()} in src`);
for (const [name, act] of steps) {
  act();
  await pause(settleMs);
  const all = [...(await called(pid, files))].filter((of) => !idle.has(of));
  const passed = new Set(all.map((of) => of.slice(0, of.indexOf(' '))));
  console.log(`${name}: ${passed.size} files, ${all.length} functions`);
  if (process.env.SHOW)
    console.log(
      all
        .map((of) => `  ${of.replace(/@\d+$/, '')}`)
        .sort()
        .join('\n'),
    );
}
