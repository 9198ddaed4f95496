// npm start: the demo, in a fresh clone with nothing installed.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ensureBuilt, ensureInstalled, ensureNode, root } from './setup.mjs';

ensureNode();
ensureInstalled();
ensureBuilt();
const demo = spawn(process.execPath, [join(root, 'dist', 'main.js'), 'demo', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
// The terminal sends Ctrl-C to the whole group, but a kill reaches only this process, which therefore passes it on.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => demo.kill('SIGTERM'));
demo.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 1);
});
