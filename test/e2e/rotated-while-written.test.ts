import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { isInstalled } from '../installed.ts';
import { sumOn } from '../page-sum.ts';
import { until } from '../until.ts';
import { startAgent } from './process.ts';

const entries = (from: number, count: number) =>
  Array.from(
    { length: count },
    (_, n) => `{"level":"info","ts":${1767225600 + from + n},"msg":"m${from + n}"}\n`,
  );
const before = 100;
const late = 5;

test.skipIf(!isInstalled('logrotate')).each([
  { directives: ['create', 'compress'], archive: 'app.log.1.gz' },
  { directives: ['create', 'compress', 'dateext', 'dateformat -%s', 'extension .log'], archive: '.log.gz' },
  { directives: ['copy', 'compress'], archive: 'app.log.1.gz' },
  { directives: ['renamecopy', 'create', 'compress', 'olddir OLD'], archive: 'old/app.log.1.gz' },
  { directives: ['renamecopy', 'create', 'olddir OLD'], archive: 'old/app.log.1' },
])(
  'the service still writes to its log while logrotate is at work: $directives',
  async ({ directives, archive }) => {
    const place = newFolder();
    const [logs, old] = [join(place, 'logs'), join(place, 'old')];
    for (const path of [logs, old]) mkdirSync(path);
    const log = join(logs, 'app.log');
    const config = join(place, 'agent.yaml');
    const lines = [
      'log: {level: debug}',
      'admin: {listenAddress: 127.0.0.1:0}',
      'metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}',
      `stateDirectory: ${join(place, 'state')}`,
      `services: {history: {logs: {startAt: beginning, paths: ['${logs}/*.log*', '${old}/*.log*']}}}`,
    ];
    writeFileSync(config, `${lines.join('\n')}\n`);
    const fd = openSync(log, 'a');
    writeSync(fd, entries(0, before).join(''));
    const agent = await startAgent(config);
    onTestFinished(() => void agent.end('SIGKILL'));
    const counted = () => sumOn(`http://${agent.address('metrics')}/metrics`, 'svc_log_entries_total');
    await until('the log is counted', async () => (await counted()) === before);

    const rules = join(place, 'logrotate.conf');
    const own = directives.map((line) => line.replace('OLD', old));
    writeFileSync(rules, `${log} {\n  ${[...own, 'rotate 9'].join('\n  ')}\n}\n`);
    const run = spawnSync('logrotate', ['-f', '-s', join(place, 'logrotate.state'), rules], {
      encoding: 'utf8',
    });
    expect(run).toMatchObject({ status: 0, stderr: '' });
    writeSync(fd, entries(before, late).join(''));
    closeSync(fd);
    await until('the late lines are counted', async () => (await counted()) >= before + late);
    await until('the agent has decided what the rotated file is', () =>
      agent
        .output()
        .split('\n')
        .some((line) => line.includes(`${archive}"`) && /"msg":"file (?:is|continues)/.test(line)),
    );
    expect(await counted()).toBe(before + late);
  },
);
