import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build } from 'esbuild';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { loadConfig as LoadConfig, startEarly as StartEarly } from '../../src/agent/config/load.ts';
import { loadConfig as fromSource } from '../../src/agent/config/load.ts';
import { newFolder } from '../folder.ts';
import { until } from '../until.ts';

const folder = newFolder(afterAll);
const root = fileURLToPath(new URL('../..', import.meta.url));
const fixtures = fileURLToPath(new URL('../fixtures/config', import.meta.url));
const source = (path: string) => fileURLToPath(new URL(`../../src/agent/config/${path}`, import.meta.url));
let loadConfig: typeof LoadConfig;
let startEarly: typeof StartEarly;

beforeAll(async () => {
  const common = { outdir: folder, bundle: true, platform: 'node', logLevel: 'error' } as const;
  await build({
    ...common,
    entryPoints: { load: source('load.ts') },
    splitting: true,
    format: 'esm',
    banner: {
      js: "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);",
    },
  });
  const { buildConfigProcess } = await import(join(root, 'scripts', 'config-process.mjs'));
  const one = (options: BuildOptions) => build({ ...common, absWorkingDir: root, ...options });
  await buildConfigProcess(one, folder);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  ({ loadConfig, startEarly } = await import(join(folder, 'load.js')));
});

test('a process of its own gives what checking in place gives', async () => {
  const agent = join(folder, 'agent.yaml');
  writeFileSync(
    agent,
    'scope: all\nservices: {frontend: {}, history: {}}\nmetrics: {pullmetrics: {listenAddress: "127.0.0.1:0"}}\n',
  );
  const request = {
    file: agent,
    serviceConfig: ['base.yaml', 'vendor.yaml'],
    env: { PATH: '/' },
    cwd: join(fixtures, 'service'),
  };
  const loaded = await loadConfig(request);
  expect(loaded.faults).toEqual([]);
  expect(loaded).toEqual(await fromSource(request));
});

test('faults come back as well', async () => {
  const request = { file: 'all-faults-at-once.yaml', env: {}, cwd: join(fixtures, 'bad') };
  expect((await loadConfig(request)).faults).toHaveLength(5);
});

test('a file that is not there is a fault, not a failure', async () => {
  await expect(loadConfig({ file: '/nowhere.yaml', env: {}, cwd: '/' })).resolves.toMatchObject({
    faults: [{ where: '/nowhere.yaml', what: 'missing' }],
  });
});

test.each([
  ['of another version', (file: string) => writeFileSync(file, 'bytecode of another version')],
  ['that is cut off', (file: string) => truncateSync(file, 4096)],
  ['that is not there', (file: string) => rmSync(file)],
  ...[0.01, 0.3, 0.6, 0.9].map((part): [string, (file: string) => void] => [
    `with a damaged bit at ${part} of it`,
    (file) => {
      const bytes = readFileSync(file);
      bytes[Math.floor(part * bytes.length)]! ^= 1;
      writeFileSync(file, bytes);
    },
  ]),
])('bytecode %s changes no answer', async (_, spoil) => {
  const bytecode = join(folder, 'validate.cjs.bytecode');
  const kept = readFileSync(bytecode);
  spoil(bytecode);
  const request = { file: 'all-faults-at-once.yaml', env: {}, cwd: join(fixtures, 'bad') };
  expect((await loadConfig(request)).faults).toEqual((await fromSource(request)).faults);
  writeFileSync(bytecode, kept);
});

test('bytecode of another source of the same length does not run', async () => {
  const file = join(folder, 'validate.cjs');
  const kept = readFileSync(file, 'utf8');
  const request = { file: 'level-upper-case.yaml', env: {}, cwd: join(fixtures, 'bad') };
  const before = (await loadConfig(request)).faults[0]!.what;
  writeFileSync(file, kept.replaceAll('unknown level', 'UNKNOWN LEVEL'));
  const after = (await loadConfig(request)).faults[0]!.what;
  expect([before, after]).toEqual(['unknown level', 'UNKNOWN LEVEL']);
  writeFileSync(file, kept);
});

test('a process that dies without an answer rejects', async () => {
  const worker = join(folder, 'config.cjs');
  const kept = readFileSync(worker, 'utf8');
  writeFileSync(worker, 'process.exitCode = 3;');
  const answer = loadConfig({ file: 'level-upper-case.yaml', env: {}, cwd: join(fixtures, 'bad') });
  await expect(answer).rejects.toThrow(/its process ended with 3 and without an answer/);
  writeFileSync(worker, kept);
});

describe('a process that was started early', () => {
  const worker = () => join(folder, 'config.cjs');
  const request = { file: 'level-upper-case.yaml', env: {}, cwd: join(fixtures, 'bad') };
  let kept: string;
  beforeAll(() => {
    kept = readFileSync(worker(), 'utf8');
  });
  afterEach(() => writeFileSync(worker(), kept));

  /** A process that notes its id, and then does what `rest` says. */
  const noting = (rest: string) =>
    writeFileSync(
      worker(),
      `require('node:fs').appendFileSync(${JSON.stringify(join(folder, 'ids'))}, process.pid + '\\n');\n${rest}`,
    );
  const ids = () => {
    const notes = existsSync(join(folder, 'ids')) ? readFileSync(join(folder, 'ids'), 'utf8') : '';
    return notes.split('\n').filter(Boolean).map(Number);
  };
  const isAlive = (pid: number) => existsSync(`/proc/${pid}`);

  test('answers the next request, and no further one', async () => {
    rmSync(join(folder, 'ids'), { force: true });
    noting(kept);
    startEarly({});
    await until('it runs', () => ids().length === 1);
    for (const processes of [1, 2]) {
      expect((await loadConfig(request)).faults).toEqual((await fromSource(request)).faults);
      expect(ids()).toHaveLength(processes);
    }
    await until('both have ended', () => !ids().some(isAlive));
  });

  test('is replaced if it ended meanwhile', async () => {
    rmSync(join(folder, 'ids'), { force: true });
    noting('process.exitCode = 3;');
    startEarly({});
    await until('it ran', () => ids().length === 1);
    await until('it has ended', () => !isAlive(ids()[0]!));
    writeFileSync(worker(), kept);
    expect((await loadConfig(request)).faults).toEqual((await fromSource(request)).faults);
  });
});

test('an answer that is larger than a pipe is complete', async () => {
  const names = Array.from({ length: 10_000 }, (_, n) => `forbidden_tag_of_some_length_${n}`);
  const agent = join(folder, 'large.yaml');
  writeFileSync(agent, `services: {frontend: {}}\nlimits: {forbiddenTags: [${names.join(', ')}]}\n`);
  const { config, faults } = await loadConfig({ file: agent, env: {}, cwd: folder });
  expect(faults).toEqual([]);
  expect(config!.limits.forbiddenTags).toEqual(names);
});

test('a process whose agent ended before it asked, or waited for no answer, says nothing', async () => {
  const worker = join(folder, 'config.cjs');
  const unasked = spawnSync(process.execPath, [worker], { input: '', encoding: 'utf8' });
  expect(unasked).toMatchObject({ status: 0, stdout: '', stderr: '' });

  const child = spawn(process.execPath, [worker]);
  child.stdout.destroy();
  const stderr = text(child.stderr);
  const ended = once(child, 'exit');
  child.stdin.end(JSON.stringify({ file: join(folder, 'agent.yaml'), env: {}, cwd: folder }));
  expect(await stderr).toBe('');
  expect(await ended).toEqual([0, null]);
});

test('the source has no character of more than a byte, with which V8 stores each in two', () => {
  expect(readFileSync(join(folder, 'validate.cjs'), 'utf8')).toMatch(/^[\0-\xff]*$/);
});
