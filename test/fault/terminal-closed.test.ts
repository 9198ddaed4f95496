import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mainFile, type Running, start } from '../e2e/process.ts';
import { listenersIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { available } from '../installed.ts';
import { until } from '../until.ts';

// The terminal of the built program is closed while it runs.

const hasScript = available('script', existsSync('/usr/bin/script'));
let place: string;
let terminal: Running | undefined;
beforeEach(() => {
  place = newFolder();
});
afterEach(() => terminal?.end('SIGKILL'));

const path = (name: string) => join(place, name);
const written = (name: string) =>
  until(name, () => (existsSync(path(name)) && readFileSync(path(name), 'utf8').trim()) || undefined);

/** Runs the program in a terminal; a shell that outlives the terminal writes its process id and its exit status. */
function inTerminal(...args: string[]): Running {
  const program = [process.execPath, mainFile, ...args, '-c', path('agent.yaml')]
    .map((word) => `'${word}'`)
    .join(' ');
  const line = `trap '' HUP; ${program} <&0 & echo $! > ${path('pid')}; wait $!; echo $? > ${path('status')}`;
  terminal = start('/usr/bin/script', ['-qefc', line, '/dev/null']);
  return terminal;
}

test.skipIf(!hasScript)(
  'recover stops at the end of the command, with its status and its journal',
  async () => {
    writeFileSync(
      path('agent.yaml'),
      `stateDirectory: ${path('state')}
roles: [history]
services: {history: {logs: {paths: [${path('none.log')}]}}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:1', databases: {persistence: svc}}]
recovery: {allowExecute: true, commands: {safetyCopy: ['true'], restore: ['true'], startServices: ['true'], stopServices: [sh, -c, 'echo waits; exec sleep 600.25']}}
`,
    );
    const run = inTerminal(
      ...['recover', 'database-corruption', '--store', 'main', '--database', 'persistence'],
      ...['--force', 'a test', '--execute', '--yes', '--confirm', 'main'],
    );
    await until('the command runs', () => run.output().includes('\nwaits'));
    await run.end('SIGKILL');
    // A login shell passes its hang-up on.
    process.kill(Number(await written('pid')), 'SIGHUP');
    expect(await written('status')).toBe('1');
    const journal = path('state/recovery-runs/database-corruption.main.persistence.steps.jsonl');
    expect(readFileSync(journal, 'utf8')).toMatch(
      /"event":"command_ended".*sh ended with SIGHUP.*\n.*"event":"stopped"/,
    );
  },
);

test.skipIf(!hasScript)('the agent goes on without it, and stops when it is told to', async () => {
  const log = path('history.log');
  writeFileSync(log, '');
  writeFileSync(
    path('agent.yaml'),
    `stateDirectory: ${path('state')}
roles: [history]
services: {history: {logs: {paths: [${log}]}}}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
`,
  );
  const run = inTerminal('run');
  const address = await until('the listener', () => listenersIn(run.output()).get('metrics'));
  const reloaded = async () => {
    const page = await (await fetch(`http://${address}/metrics`)).text();
    return /^svc_agent_config_last_reload_success_timestamp_seconds (\S+)$/m.exec(page)?.[1];
  };
  await until('it is ready', () => run.output().includes('"msg":"ready"'));
  const before = await reloaded();
  await run.end('SIGKILL');
  const pid = Number(await written('pid'));
  process.kill(pid, 'SIGHUP');
  await until('the reload', async () => (await reloaded()) !== before);
  process.kill(pid, 'SIGTERM');
  expect(await written('status')).toBe('0');
});
