import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mainFile } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';

test('a process that may open too few files to start says how many it may, and how many to allow', () => {
  const place = newFolder();
  const config = join(place, 'agent.yaml');
  writeFileSync(
    config,
    'metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}\nservices: {history: {statsd: 127.0.0.1:0}}\n',
  );
  const script = 'ulimit -n 20; exec "$0" "$@"';
  const { status, stderr } = spawnSync(
    'sh',
    ['-c', script, process.execPath, mainFile, 'run', '-c', config],
    {
      encoding: 'utf8',
    },
  );
  expect(stderr).toBe(
    'svc-agent: open files: too few are allowed to start, got 20; raise ulimit -n, or LimitNOFILE of the systemd unit, to 1024\n',
  );
  expect(status).toBe(1);
});
