// Before npm pack: gives the packed files the modes that a clone has with the usual umask, so that the bytes of the package do
// not depend on the umask with which it is packed.
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './setup.mjs';

const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

function normalize(path) {
  const stats = statSync(path);
  if (stats.isDirectory()) for (const name of readdirSync(path)) normalize(join(path, name));
  else chmodSync(path, stats.mode & 0o100 ? 0o755 : 0o644);
}

// npm packs the last three files even if the list does not name them.
const packed = files.filter((name) => !name.startsWith('!'));
for (const name of [...packed, 'LICENSE', 'README.md', 'package.json']) normalize(join(root, name));
