import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mainFile, type Running, start } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
import { available } from '../installed.ts';
import { bySize, testOnce } from '../size.ts';
import { until } from '../until.ts';

// Runs of the built program that end before their procedure does.

let place: string;
const running: Running[] = [];
beforeEach(() => {
  place = newFolder();
});
afterEach(async () => {
  for (const run of running.splice(0)) await run.end('SIGKILL');
});

const state = () => join(place, 'state');
const journal = () => join(state(), 'recovery-runs', 'database-corruption.main.persistence.steps.jsonl');

/** The configuration. `stop` is the command of the second step; the restore, after the safety copy, fails. */
const configure = (stop: readonly string[], address = '127.0.0.1:1') =>
  writeFileSync(
    join(place, 'agent.yaml'),
    `stateDirectory: ${state()}
roles: [history]
services: {history: {logs: {paths: [${place}/none.log]}}}
stores: [{name: main, kind: postgres, address: '${address}', databases: {persistence: svc}}]
recovery: {allowExecute: true, commands: {safetyCopy: ['true'], restore: ['false'], startServices: ['true'], stopServices: ${JSON.stringify(stop)}}}
`,
  );

const words = (procedure: string, ...args: string[]) => [
  ...[mainFile, 'recover', procedure, '-c', join(place, 'agent.yaml'), '--force', 'a test'],
  ...['--store', 'main', '--database', 'persistence', ...args],
];

function recover(procedure: string, ...args: string[]): Running {
  const run = start(process.execPath, words(procedure, ...args));
  running.push(run);
  return run;
}

/** A run without anybody to ask; it ends at the restore. */
async function unattended(...args: string[]) {
  const run = recover('database-corruption', '--execute', '--yes', '--confirm', 'main', ...args);
  return { status: await run.ended, output: run.output() };
}

const commandOf = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8');

const failed = { status: 1, output: expect.stringContaining('false ended with exit status 1') };

testOnce(
  'a command that outlives its run keeps out every run of the same database until its end',
  async () => {
    configure(['sleep', '600.75']);
    const killed = recover('database-corruption', '--execute', '--yes', '--confirm', 'main');
    const record = join(state(), 'recovery-runs', 'store.main.persistence.lock', 'command.json');
    const recorded = await until('the command is on record with its process', () => {
      const read = JSON.parse(readFileSync(record, 'utf8')) as { pid?: number };
      return read.pid === undefined ? undefined : { ...read, pid: read.pid };
    });
    const { pid } = recorded;
    const gone = once(killed.child, 'exit');
    killed.child.kill('SIGKILL');
    await gone;
    try {
      for (const [procedure, ...args] of [
        ['database-corruption'],
        ['database-corruption', '--restart'],
        ['database-corruption', '--domain', 'orders'],
        ['cluster-loss'],
      ] as const) {
        const refused = recover(procedure, ...args, '--execute', '--yes', '--confirm', 'main');
        expect(await refused.ended).toBe(1);
        expect(refused.output()).toContain(`is still running (pid ${pid}): sleep 600.75`);
      }
      // This is the record that a kill leaves between the start of the command and the record of its process.
      writeFileSync(record, JSON.stringify({ ...recorded, pid: undefined, start: undefined }));
      const refused = await unattended();
      expect(refused.status).toBe(1);
      expect(refused.output).toContain(`is still running (pid ${pid}: sleep 600.75): sleep 600.75`);
    } finally {
      process.kill(pid);
    }
    await until('its end', () => !existsSync(`/proc/${pid}`));
    configure(['true']);
    const after = await unattended('--domain', 'orders');
    expect(after).toMatchObject(failed);
    expect(after.output).toContain('Resumes the run of ');
    expect(after.output).toMatch(/during this command, whose result is unknown.*\n {2}sleep 600\.75/);
  },
);

testOnce('a service that a killed run has started does not keep out the next one', async () => {
  configure(['sh', '-c', 'sleep 600.375 & echo $!; exec sleep 600.625']);
  const killed = recover('database-corruption', '--execute', '--yes', '--confirm', 'main');
  const record = join(state(), 'recovery-runs', 'store.main.persistence.lock', 'command.json');
  const recorded = await until('the command is on record with its process', () => {
    const read = JSON.parse(readFileSync(record, 'utf8')) as { pid?: number };
    return read.pid === undefined ? undefined : { ...read, pid: read.pid };
  });
  const service = await until('the service', () => Number(/^\d+$/m.exec(killed.output())?.[0]) || undefined);
  try {
    const gone = once(killed.child, 'exit');
    killed.child.kill('SIGKILL');
    await gone;
    process.kill(recorded.pid);
    await until('the end of the command', () => !existsSync(`/proc/${recorded.pid}`));
    // This is the record that a kill leaves between the start of the command and the record of its process.
    writeFileSync(record, JSON.stringify({ ...recorded, pid: undefined, start: undefined }));
    configure(['true']);
    const after = await unattended();
    expect(after).toMatchObject(failed);
    expect(after.output).toContain('Resumes the run of ');
  } finally {
    process.kill(service);
  }
});

const restoreKills: readonly [what: string, isRunKilled: boolean][] = [
  ['the shell of a restore is killed', false],
  ['the run is killed, and then the shell', true],
];
test.each(bySize({ short: restoreKills.slice(1), long: restoreKills, nightly: restoreKills }))(
  '%s, and what it started keeps out every run until its end',
  async (_, isRunKilled) => {
    configure(['true']);
    const config = readFileSync(join(place, 'agent.yaml'), 'utf8');
    // A restore that the agent runs itself: a shell around the client of the store.
    const restore = JSON.stringify(['bash', '-c', `tail -f /dev/null --pid=${process.pid} | cat`]);
    const restoring = config.replace("restore: ['false']", `restore: ${restore}`);
    writeFileSync(join(place, 'agent.yaml'), restoring);
    const run = recover('database-corruption', '--execute', '--yes', '--confirm', 'main');
    const record = join(state(), 'recovery-runs', 'store.main.persistence.lock', 'command.json');
    const { pid: shell } = await until('the restore is on record', () => {
      const read = JSON.parse(readFileSync(record, 'utf8')) as { pid?: number; command: string[] };
      return read.pid !== undefined && read.command[0] === 'bash' ? { pid: read.pid } : undefined;
    });
    const children = await until('the shell has started both', () => {
      const pids = readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8')
        .trim()
        .split(' ')
        .map(Number);
      return pids.length === 2 && pids.every((pid) => /^(?:tail|cat)/.test(commandOf(pid)))
        ? pids
        : undefined;
    });
    try {
      // What still runs holds the output of the run open.
      const gone = once(run.child, 'exit');
      if (isRunKilled) run.child.kill('SIGKILL');
      if (isRunKilled) await gone;
      process.kill(shell, 'SIGKILL');
      expect(await gone).toEqual(isRunKilled ? [null, 'SIGKILL'] : [1, null]);
      if (!isRunKilled) {
        const stopped = /bash ended with SIGKILL; a process that it started is still running \(pid \d+: /;
        await until('the run says why it stopped', () => stopped.test(run.output()));
      }
      await until('the shell is gone', () => !existsSync(`/proc/${shell}`) || commandOf(shell) === '');
      for (const args of [[], ['--restart']]) {
        const refused = await unattended(...args);
        expect(refused.status).toBe(1);
        const left = /a command of an earlier run is still running \(pid (\d+): (\w+)/.exec(refused.output);
        expect(children).toContain(Number(left?.[1]));
        expect(refused.output).toContain('| cat');
        expect(refused.output).not.toContain('Step 1');
      }
    } finally {
      execFileSync('kill', children.map(String));
    }
    await until('their end', () => children.every((pid) => !existsSync(`/proc/${pid}`)));
    writeFileSync(join(place, 'agent.yaml'), config);
    expect(await unattended()).toMatchObject(failed);
  },
);

testOnce('a command that a signal ends with exit status 0 does not count as done', async () => {
  configure(['sh', '-c', 'trap "exit 0" TERM; echo waits; while :; do sleep 0.05; done']);
  const run = recover('database-corruption', '--execute', '--yes', '--confirm', 'main');
  await until('the command runs', () => run.output().includes('\nwaits'));
  expect(await run.end('SIGTERM')).toBe(1);
  expect(run.output()).toContain('sh was interrupted by a signal, and ended with exit status 0');
  expect(run.output()).not.toContain('Step 3 of 7');
});

testOnce('the end of the input at a prompt is a no', async () => {
  configure(['true']);
  const run = recover('database-corruption', '--execute');
  run.child.stdin?.end();
  expect(await run.ended).toBe(1);
  expect(run.output()).toContain('Stopped: Stop the services: not run');
  expect(run.output()).not.toContain('The services are stopped');
  expect(run.output()).not.toContain('Error');
});

testOnce('a step that cannot be undone is shown before its name is asked for', async () => {
  configure(['true']);
  const config = readFileSync(join(place, 'agent.yaml'), 'utf8');
  writeFileSync(join(place, 'agent.yaml'), config.replace("restore: ['false'], ", ''));
  const run = recover('database-corruption', '--execute', '--no-safety-copy');
  await until('it asks', () => run.output().includes('Run it?'));
  run.child.stdin?.write('y\n');
  await until('it asks for the name', () => run.output().includes('Type main'));
  run.child.stdin?.write('mian\n');
  expect(await run.ended).toBe(1);
  expect(run.output()).toMatch(/By hand: Restore the backup.*\n.*This cannot be undone/);
  expect(run.output()).toContain('main was not confirmed');
});

testOnce.skipIf(!available('script', existsSync('/usr/bin/script')))(
  'Ctrl-C in a terminal ends the command',
  async () => {
    configure(['sh', '-c', 'echo waits; exec sleep 600.5']);
    const command = [process.execPath, ...words('database-corruption', '--execute')];
    const quoted = command.map((word) => `'${word}'`).join(' ');
    // A shell that stayed would be interrupted, too, and end with its own status.
    const run = start('/usr/bin/script', ['-qefc', `exec ${quoted}`, '/dev/null']);
    running.push(run);
    await until('it asks', () => run.output().includes('Run it?'));
    run.child.stdin?.write('y\n');
    await until('the command runs', () => run.output().includes('\nwaits'));
    run.child.stdin?.write('\x03');
    expect(await run.ended).toBe(1);
    expect(run.output()).toMatch(/Stopped: Stop the services: sh ended with SIG(?:INT|TERM)/);
  },
);

testOnce('without --execute, --yes does not pass over a command that nobody has run', async () => {
  configure(['true']);
  const run = recover('database-corruption', '--yes');
  expect(await run.ended).toBe(1);
  expect(run.output()).toContain(
    'refused before anything was changed: Stop the services: it has to be done by hand',
  );
});

testOnce('a journal that is deleted meanwhile is written again', async () => {
  configure(['rm', journal()]);
  expect(await unattended()).toMatchObject(failed);
  const events = readFileSync(journal(), 'utf8').match(/"event":"\w+"/g);
  expect(events?.slice(0, 2)).toEqual(['"event":"started"', '"event":"forced"']);
  expect(events?.at(-1)).toBe('"event":"stopped"');
});

testOnce('a journal that cannot be written stops the run before anything is done', async () => {
  const ran = join(place, 'ran');
  configure(['touch', ran]);
  mkdirSync(journal(), { recursive: true });
  const { status, output } = await unattended();
  expect({ status, output }).toMatchObject({
    status: 1,
    output: expect.stringMatching(
      /steps\.jsonl: the journal of the recovery cannot be read or written, EISDIR/,
    ),
  });
  expect(output).not.toContain('    at ');
  expect(existsSync(ran)).toBe(false);
});

testOnce(
  'a command that succeeded is not repeated by the run that resumes before its step was done',
  async () => {
    const ran = join(place, 'ran');
    configure(['sh', '-c', `echo once >> ${ran}`]);
    expect(await unattended()).toMatchObject(failed);
    const text = readFileSync(journal(), 'utf8');
    const end = text.indexOf('\n', text.indexOf('"event":"command_ended"'));
    // A kill while a line is written leaves the journal like this.
    writeFileSync(journal(), `${text.slice(0, end)}\n{"event":"step_do`);
    const { output } = await unattended();
    expect(output).toContain('Nothing to run: the commands succeeded in the earlier run.');
    expect(output).toContain('Step 3 of 7');
    expect(readFileSync(ran, 'utf8')).toBe('once\n');
    expect(await unattended('--restart')).toMatchObject(failed);
    expect(readFileSync(ran, 'utf8')).toBe('once\nonce\n');
  },
);

testOnce('a run of another target, or of long ago, is not resumed without a word', async () => {
  configure(['true']);
  expect(await unattended()).toMatchObject(failed);
  configure(['true'], '127.0.0.1:2');
  const other = await unattended();
  expect(other.output).toMatch(/Starts over: .*"address":"127\.0\.0\.1:1"/);
  expect(other.output).not.toContain('Done in the earlier run.');
  const named = await unattended('--backup', join(place, 'agent.yaml'));
  expect(named.output).toContain('Starts over: ');
  const text = readFileSync(journal(), 'utf8');
  const hoursAgo = 36e5 * 30;
  writeFileSync(
    journal(),
    text.replace(/"atMs":(\d+)/g, (_, atMs: string) => `"atMs":${Number(atMs) - hoursAgo}`),
  );
  const stale = await unattended();
  expect(stale.status).toBe(1);
  expect(stale.output).toContain(
    'Its last step was 30 h ago: resume it without --yes, or start over with --restart',
  );
  expect((await unattended('--restart')).output).toContain('Step 3 of 7');
  rmSync(journal());
});
