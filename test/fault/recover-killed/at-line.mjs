// Loaded with --import into `svc-agent recover`: kills the process as soon as the journal of the run has KILLED_AT_LINE lines. A test
// that polls the journal from outside misses lines that follow each other within milliseconds.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const line = Number(process.env.KILLED_AT_LINE);
const append = fs.appendFileSync;
fs.appendFileSync = (file, ...rest) => {
  append(file, ...rest);
  if (typeof file !== 'number') return;
  const path = fs.readlinkSync(`/proc/self/fd/${file}`);
  if (!path.endsWith('.steps.jsonl')) return;
  const lines = fs.readFileSync(path, 'utf8').split('\n').length - 1;
  if (lines >= line) process.kill(process.pid, 'SIGKILL');
};
syncBuiltinESMExports();
