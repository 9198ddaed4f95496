import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { mainFile, start } from '../e2e/process.ts';
import { entriesIn, listenersIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { sumOn } from '../page-sum.ts';
import { until } from '../until.ts';

const count = 700;
const entry = '{"level":"info","msg":"m"}\n';
const warning = '"msg":"more log files than may be open at once"';

/** Starts the built agent beside `count` logs, of which it has read one line each. */
async function following(mostOpen: number) {
  const place = newFolder();
  mkdirSync(join(place, 'old'));
  const logs = Array.from({ length: count }, (_, n) => `app${n}.log`);
  for (const log of logs) writeFileSync(join(place, log), entry);
  const config = join(place, 'agent.yaml');
  const lines = [
    'admin: {listenAddress: 127.0.0.1:0}',
    'metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}',
    `services: {history: {logs: {paths: ['${place}/*.log'], startAt: beginning}}}`,
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const script = `ulimit -n ${mostOpen}; exec "$0" "$@"`;
  const agent = start('sh', ['-c', script, process.execPath, mainFile, 'run', '-c', config], {}, place);
  onTestFinished(() => void agent.end('SIGKILL'));
  const address = await until('metrics are served', () => listenersIn(agent.output()).get('metrics'));
  const sum = (name: string) => sumOn(`http://${address}/metrics`, name);
  const counted = (lines: number) =>
    until(`${lines} lines are counted`, async () => (await sum('svc_log_entries_total')) >= lines);
  await counted(count);
  return { agent, place, logs, sum, counted };
}

test('700 logs are moved to a directory that no path names before their last lines are read: none is lost', async () => {
  const { agent, place, logs, sum, counted } = await following(4096);
  // The agent is stopped, so that it reads nothing between the two steps.
  agent.child.kill('SIGSTOP');
  for (const log of logs) {
    appendFileSync(join(place, log), entry);
    renameSync(join(place, log), join(place, 'old', `${log}.1`));
    writeFileSync(join(place, log), entry);
  }
  agent.child.kill('SIGCONT');
  await counted(3 * count);
  expect(await sum('svc_log_entries_total')).toBe(3 * count);
  expect(await sum('svc_log_skipped_bytes_total')).toBe(0);
  expect(agent.output()).not.toContain(warning);
});

test('a process that may not open as many files as there are logs says so once, with a remedy', async () => {
  const { agent } = await following(1024);
  const warnings = entriesIn(agent.output()).filter((entry) => JSON.stringify(entry).includes(warning));
  expect(warnings).toMatchObject([
    { limit: 512, remedy: expect.stringContaining('raise LimitNOFILE or ulimit -n') },
  ]);
});
