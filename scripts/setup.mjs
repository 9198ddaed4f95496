// Installs and builds what is missing or stale, and says what it does. This is plain JavaScript, because it runs before anything
// is installed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const say = (text) => process.stderr.write(`svc-agent: ${text}\n`);

/** Runs a program to its end in the project's folder; if it fails, ends this process with its status. */
export function must(command, args, env = {}) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (error) say(`${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

/** Runs `npm ci` unless node_modules was made from exactly this lock file. */
export function ensureInstalled() {
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  const stamp = join(root, 'node_modules', '.svc-agent-lock');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  say('installing dependencies (npm ci) …');
  must('npm', ['ci', '--no-fund', '--no-audit', '--loglevel=error']);
  writeFileSync(stamp, lock);
}

const inputs = [
  'src',
  'examples',
  'vocabularies',
  'rules',
  'dashboards',
  'runbooks',
  'scripts',
  'package.json',
  'package-lock.json',
];
/** Tests write their cases into this folder, after the build. */
const generated = 'rules/tests';

function filesBelow(path) {
  if (path === generated) return [];
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name) => filesBelow(`${path}/${name}`));
}

/**
 * A digest of the names and contents of all sources. Times are not part of it: with times, a test or `git` that only touches a
 * source would make the build stale.
 */
function sources() {
  const digest = createHash('sha256');
  for (const path of inputs.flatMap(filesBelow)) {
    const contents = readFileSync(join(root, path));
    digest.update(`${path}\0${contents.length}\0`).update(contents);
  }
  return digest.digest('hex');
}

/** Bundles into dist/ unless it was made from exactly these sources. */
export function ensureBuilt() {
  const stamp = join(root, 'dist', '.built');
  const wanted = sources();
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  say('building dist/ …');
  must(process.execPath, [join(root, 'scripts', 'build.mjs')]);
  mkdirSync(join(root, 'dist'), { recursive: true });
  writeFileSync(stamp, wanted);
}

/** Bundles sources for this Node; the bundles import the packages of the project. */
export async function bundle(options) {
  const { build } = await import('esbuild');
  const form = { bundle: true, format: 'esm', platform: 'node', target: 'node20', packages: 'external' };
  await build({
    absWorkingDir: root,
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
    ...form,
    ...options,
  });
}

/** Checks Node's version, before anything else could fail in a less clear way. */
export function ensureNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  say(`Node ${process.versions.node} is too old; use 20.19 or newer`);
  process.exit(2);
}
