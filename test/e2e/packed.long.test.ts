import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../unit/house/imports.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { folder, start } from './process.ts';

const place = folder();
afterAll(() => place.remove());
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
const prefix = join(place.path, 'prefix');
const program = join(prefix, 'bin', 'svc-agent');
const installed = join(prefix, 'lib', 'node_modules', 'svc-agent');

const npm = (cwd: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')}: ${stderr}${stdout}`);
  return stdout;
};
const call = (...args: string[]) => spawnSync(program, args, { encoding: 'utf8', cwd: place.path });

/** Packs a copy of the source, in which nothing is built, and installs the result as a user does. */
beforeAll(() => {
  const source = join(place.path, 'source');
  const left = ['node_modules', 'dist', '.git'].map((name) => join(root, name));
  cpSync(root, source, { recursive: true, filter: (path) => !left.includes(path) });
  symlinkSync(join(root, 'node_modules'), join(source, 'node_modules'));
  npm(source, 'pack', '--pack-destination', place.path);
  const archive = readdirSync(place.path).find((name) => name.endsWith('.tgz'))!;
  npm(place.path, 'install', '--global', '--offline', '--prefix', prefix, join(place.path, archive));
});

test('npm install --global brings a svc-agent that works, and no package beside it', async () => {
  expect(call('--version').stdout).toBe(`svc-agent ${version}\n`);
  expect(existsSync(join(installed, 'node_modules'))).toBe(false);
  expect(readdirSync(join(prefix, 'lib', 'node_modules'))).toEqual(['svc-agent']);
  expect(existsSync(join(installed, 'examples', 'agent.yaml'))).toBe(true);
  expect(existsSync(join(installed, 'examples', 'service'))).toBe(false);

  expect(call('rules').stdout).toContain('alert: SvcServiceDown');
  expect(JSON.parse(call('dashboards', 'overview').stdout).uid).toBe('svc-overview');
  const file = agentFile(place.path, { more: '  frontend: {vocabulary: cadence}\n' });
  expect(call('check', '-c', file)).toMatchObject({ status: 0, stderr: '' });
  const agent = start(program, ['run', '-c', file]);
  const address = await until(
    'the agent listens',
    () => /"listener":"admin","address":"([^"]+)"/.exec(agent.output())?.[1],
  );
  await until('it is ready', async () => (await fetch(`http://${address}/ready`)).ok);
  expect(await agent.end(), agent.output()).toBe(0);
});

test('the licence notices of what is bundled come with it, and nothing superfluous', () => {
  const notices = readFileSync(join(installed, 'dist', 'NOTICES.txt'), 'utf8');
  const bundled = [
    'undici',
    'pg',
    'mysql2',
    'cassandra-driver',
    'zod',
    'yaml',
    'uplot',
    'pino',
    'prom-client',
  ];
  for (const name of [...bundled, 'chokidar', 'picomatch', 'bcryptjs', '@opentelemetry/api']) {
    const folder = join(root, 'node_modules', name);
    const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file))!;
    expect(notices, name).toContain(`${name} `);
    expect(notices, name).toContain(readFileSync(join(folder, licence), 'utf8').trim());
  }
  // Not in the bundles.
  for (const name of ['typescript', 'vitest', 'esbuild'])
    expect(notices).not.toMatch(new RegExp(`^${name} `, 'm'));
  expect(existsSync(join(installed, 'rules', 'tests'))).toBe(false);
  const shipped = readdirSync(installed).sort();
  const folders = ['dashboards', 'deploy', 'dist', 'docs', 'examples', 'rules', 'runbooks', 'vocabularies'];
  expect(shipped).toEqual(
    [...folders, 'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'].sort(),
  );
});

test('the demo of an installed svc-agent runs, without a store, and names its command', async () => {
  const demo = start(program, ['demo', '--incident-after', '0s'], { PATH: `${process.env.PATH}` });
  try {
    await until('the demo says what to type', () => demo.output().includes('Ctrl-C stops the demo'));
    expect(demo.output()).toContain('without a store: @electric-sql/pglite is not installed');
    expect(demo.output()).toMatch(/^ {2}svc-agent status -c \S+\/agent\.yaml$/m);
  } finally {
    expect(await demo.end(), demo.output()).toBe(0);
  }
});

// What a bundle loads by name has to be there; the store of the demo is the one that may be missing.
test('the installed bundles load nothing but Node’s own modules', () => {
  const bundles = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.[cm]?js$/.test(name),
  );
  expect(bundles.length).toBeGreaterThan(10);
  const loaded = bundles.flatMap((name) => {
    const text = readFileSync(join(installed, 'dist', name), 'utf8');
    return [...text.matchAll(/(?:\bfrom|\bimport\(|\bimport)\s*"([a-z@][\w@/.:-]*)"/g)].map(
      ([, what]) => what!,
    );
  });
  const foreign = loaded.filter((what) => !what.startsWith('node:') && !builtinModules.includes(what));
  // What may be missing: the store of the demo, an AWS signer that is native code, and what probes load, which the
  // process that checks a configuration does not run.
  const optional = /^(?:@electric-sql\/|@aws-sdk\/signature-v4-crt$|undici|aws4fetch$)/;
  expect([...new Set(foreign)].filter((what) => !optional.test(what))).toEqual([]);
});
