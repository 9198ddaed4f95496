import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { root } from '../unit/house/imports.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { start } from './process.ts';

const place = newFolder(afterAll);
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
const prefix = join(place, 'prefix');
const program = join(prefix, 'bin', 'svc-agent');
const installed = join(prefix, 'lib', 'node_modules', 'svc-agent');

const npm = (cwd: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')}: ${stderr}${stdout}`);
  return stdout;
};
const call = (...args: string[]) => spawnSync(program, args, { encoding: 'utf8', cwd: place });

/** Packs a copy of the source, in which nothing is built, as a user with this umask does. Returns the archive. */
function packedIn(source: string, destination: string, umask = '022'): string {
  const left = ['node_modules', 'dist', '.git'].map((name) => join(root, name));
  cpSync(root, source, { recursive: true, filter: (path) => !left.includes(path) });
  symlinkSync(join(root, 'node_modules'), join(source, 'node_modules'));
  // A clone of that user has no other modes.
  if (umask === '027') execFileSync('chmod', ['-R', 'g-w,o-rwx', source]);
  const line = `umask ${umask} && exec npm pack --pack-destination "$0"`;
  const { status, stderr } = spawnSync('sh', ['-c', line, destination], { cwd: source, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm pack: ${stderr}`);
  return join(destination, readdirSync(destination).find((name) => name.endsWith('.tgz'))!);
}

let archive: string;
/** Installs the package as a user does. */
beforeAll(() => {
  archive = packedIn(join(place, 'source'), place);
  npm(place, 'install', '--global', '--offline', '--prefix', prefix, archive);
});

test('packed in another directory, at another time, with another umask, it is the same byte by byte', () => {
  const elsewhere = join(place, 'elsewhere');
  const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');
  mkdirSync(elsewhere);
  expect(digest(packedIn(join(elsewhere, 'a', 'deeper', 'one'), elsewhere, '027'))).toBe(digest(archive));
});

test('the bill of materials has every bundled package, with the version and the hash of the lock file', () => {
  const read = (file: string) => JSON.parse(readFileSync(file, 'utf8'));
  const bill = read(join(installed, 'dist', 'sbom.cdx.json'));
  expect(bill).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 });
  expect(bill.metadata.component).toMatchObject({ type: 'application', name: 'svc-agent', version });
  expect(bill.serialNumber).toMatch(
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  const { packages } = read(join(root, 'package-lock.json')) as {
    packages: Record<string, { version: string; integrity?: string }>;
  };
  for (const { name, version: shown, purl, hashes, licenses } of bill.components) {
    const locked = Object.entries(packages).filter(([path]) => path.endsWith(`node_modules/${name}`));
    expect(locked.map(([, one]) => one.version)).toContain(shown);
    const { integrity } = locked.find(([, one]) => one.version === shown)![1];
    const [{ alg, content }] = hashes;
    expect(`${alg.toLowerCase().replace('-', '')}-${Buffer.from(content, 'hex').toString('base64')}`).toBe(
      integrity,
    );
    expect(purl).toBe(`pkg:npm/${name.replace('@', '%40')}@${shown}`);
    expect(licenses).toHaveLength(1);
  }
  // The notices come from the files of the same bundles, not from the lock file.
  const notices = readFileSync(join(installed, 'dist', 'NOTICES.txt'), 'utf8');
  const noticed = [...notices.matchAll(/^((?:@[\w.-]+\/)?[\w.-]+) v?(\d+\.\d+\.\d+\S*) \(/gm)].map(
    ([, name, is]) => `${name} ${is}`,
  );
  expect(
    bill.components.map((one: { name: string; version: string }) => `${one.name} ${one.version}`).sort(),
  ).toEqual([...new Set(noticed)].sort());
});

test('npm install --global brings a svc-agent that works, and no package beside it', async () => {
  expect(call('--version').stdout).toBe(`svc-agent ${version}\n`);
  expect(existsSync(join(installed, 'node_modules'))).toBe(false);
  expect(readdirSync(join(prefix, 'lib', 'node_modules'))).toEqual(['svc-agent']);
  expect(existsSync(join(installed, 'examples', 'agent.yaml'))).toBe(true);
  expect(existsSync(join(installed, 'examples', 'service'))).toBe(false);

  expect(call('rules').stdout).toContain('alert: SvcServiceDown');
  expect(JSON.parse(call('dashboards', 'overview').stdout).uid).toBe('svc-overview');
  const file = agentFile(place, { more: '  frontend: {vocabulary: cadence}\n' });
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
  for (const name of [...bundled, 'picomatch', 'bcryptjs', '@opentelemetry/api']) {
    const folder = join(root, 'node_modules', name);
    const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file))!;
    expect(notices, name).toContain(`${name} `);
    expect(notices, name).toContain(readFileSync(join(folder, licence), 'utf8').trim());
  }
  // These packages are not in the bundles.
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

// What a bundle loads by name must exist; only the store of the demo may be missing.
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
  // Packages that may be missing: the store of the demo, an AWS signer that is native code, and what probes load, which the
  // process that checks a configuration does not run.
  const optional = /^(?:@electric-sql\/|@aws-sdk\/signature-v4-crt$|undici|aws4fetch$)/;
  expect([...new Set(foreign)].filter((what) => !optional.test(what))).toEqual([]);
});
