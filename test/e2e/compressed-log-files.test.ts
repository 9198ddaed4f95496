import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { command, startAgent } from './process.ts';

test('compressed files that are not read are in /metrics and in check', async () => {
  const place = folder();
  const config = agentFile(place.path);
  writeFileSync(join(place.path, 'app.log'), '{"level":"info","msg":"one"}\n');
  writeFileSync(join(place.path, 'app.log.2.gz'), gzipSync('{"level":"info","msg":"older"}\n'));
  writeFileSync(join(place.path, 'app.log.3.zst'), 'not read');
  writeFileSync(
    config,
    `stateDirectory: ${join(place.path, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
services:
  history: {logs: {paths: ['${place.path}/app.log*'], startAt: beginning}}
`,
  );
  const { stdout, status } = command(['check', '-c', config]);
  expect(stdout).toMatch(/matches 2 compressed files, which the agent does not read, such as app\.log\.[23]/);
  expect(status).toBe(0);
  const agent = await startAgent(config);
  try {
    const metric = /^svc_agent_log_files_passed_over\{[^}]*reason="compressed"[^}]*\} 2$/m;
    await until('the metric', async () =>
      metric.test(await (await fetch(`http://${agent.address('metrics')}/metrics`)).text()),
    );
  } finally {
    await agent.end();
    place.remove();
  }
});
