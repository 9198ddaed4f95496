import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { check, no, unknown, yes } from '../../../src/agent/recovery/check.ts';
import { newFolder } from '../../folder.ts';
import { holds, operator, sessions, step } from '../../recovery-session.ts';
import { until } from '../../until.ts';

const leaves = (what: string) => ({ what, undo: `undo ${what}` });

/** Steps of which `bad` fails until the test changes it. */
function resumable() {
  let isFixed = false;
  const steps = [
    step('stop', { commands: [['true']], leaves: leaves('stopped'), proves: [holds(unknown('?'), 'p')] }),
    step('bad', {
      commands: [['sh', '-c', 'exit 0']],
      proves: [check('f', 'fixed', async () => (isFixed ? yes('now') : no('not yet')))],
      leaves: leaves('half'),
    }),
    step('verify', { clears: ['bad'] }),
    step('start', {
      clears: ['stop', 'start'],
      byHand: 'turn it',
      leaves: leaves('starting'),
    }),
    step('repoint', { owes: leaves('repoint') }),
  ];
  const fix = () => {
    isFixed = true;
  };
  return { steps, fix };
}

test('a run that stopped says what it leaves, and goes on at its step', async () => {
  const { run } = sessions();
  const { steps, fix } = resumable();
  expect(await run(steps, operator())).toMatchObject({
    ok: false,
    left: [leaves('stopped'), leaves('half'), leaves('repoint')],
  });
  fix();
  const who = operator([true, false]);
  // The operator says no at the start of the roles: what was restored is cleared, and the start is not.
  expect(await run(steps, who)).toMatchObject({
    ok: false,
    left: [leaves('starting'), leaves('repoint')],
    notProved: ['check p: ?'],
  });
  expect(who.lines[0]).toBe('stopped undo stopped');
  expect(who.text()).toMatch(
    /Resumes the run of \S+, which stopped after 1 of 5 steps; --restart starts over\./,
  );
  expect(who.text()).toContain('Do stop\nWhy stop.\nDone in the earlier run.');
  expect(who.asked).toEqual(['Run it?', 'Is it done?']);
  expect(await run(steps, operator())).toMatchObject({ ok: true, left: [], notProved: ['check p: ?'] });
});

test('a run that starts over still leaves what the one before it did', async () => {
  const { run } = sessions();
  const { steps } = resumable();
  await run(steps, operator());
  const blocked = [step('first', { requires: [holds(no('alive'))] }), ...steps];
  const who = operator();
  expect(await run(blocked, who, { restart: true })).toMatchObject({
    ok: false,
    left: [leaves('stopped'), leaves('half'), leaves('repoint')],
  });
  expect(who.text()).not.toContain('Resumes');
});

test('a run that began nothing leaves nothing, and owes nothing', async () => {
  const blocked = [step('first', { requires: [holds(no('alive'))] }), ...resumable().steps];
  expect(await sessions().run(blocked, operator())).toMatchObject({ ok: false, left: [] });
});

test('a run of something else, or one that did nothing, is not resumed', async () => {
  const { run } = sessions();
  const { steps } = resumable();
  const refused = [step('first', { requires: [holds(no('alive'))] })];
  await run(refused, operator());
  const second = operator();
  await run(steps, second);
  expect(second.text()).not.toContain('Resumes');
  const other = operator();
  await run(steps, other, { subject: { target: { domain: 'other' } } });
  expect(other.text()).toMatch(
    /Starts over: the run of \S+, which stopped after 1 of 5 steps, was for \{"target":\{"domain":"orders"\}\}\./,
  );
  const named = operator();
  await run(steps, named, { subject: { target: { domain: 'other' }, backup: '/b' } });
  expect(named.text()).toContain('Starts over: ');
  const same = operator();
  await run(steps, same, { subject: { target: { domain: 'other' } } });
  expect(same.text()).toContain('Resumes the run of ');
});

test('a run with a named backup is resumed without naming it again', async () => {
  const { run } = sessions();
  const target = { store: 'main' };
  const steps = [step('stop', { commands: [['true']] }), step('restore', { requires: [holds(no('alive'))] })];
  await run(steps, operator(), { subject: { target, backup: '/b' } });
  for (const backup of [undefined, '/b']) {
    const who = operator();
    await run(steps, who, { subject: { target, backup } });
    expect(who.text()).toMatch(/Resumes the run of \S+, which stopped after 1 of 2 steps;/);
  }
});

test.each([
  [24, true, operator(true), true],
  [25, true, operator(true), true],
  [25, false, operator(false), 'not resumed; --restart starts over'],
  [
    25,
    false,
    operator(true, true),
    'Its last step was 25 h ago: resume it without --yes, or start over with --restart',
  ],
])('a run whose last step was %d hours ago', async (hours, ok, who, msg) => {
  const { run, journal } = sessions();
  const atMs = Date.now() - hours * 3_600_000 + 60_000;
  const lines = [
    { event: 'started', atMs, procedure: 'failback', subject: { target: { domain: 'orders' } } },
    { event: 'command_started', atMs, step: 'one', command: ['sleep', '9'] },
  ];
  writeFileSync(journal, lines.map((line) => JSON.stringify(line)).join('\n'));
  const steps = [step('one', { commands: [['true']], leaves: leaves('half') })];
  expect(await run(steps, who)).toMatchObject(ok ? { ok, left: [] } : { ok, left: [leaves('half')], msg });
  expect(who.asked.filter((question) => question.startsWith('Its last step was 25 h ago'))).toHaveLength(
    hours === 25 && !who.isAway ? 1 : 0,
  );
  expect(who.text().includes(`started at ${new Date(atMs).toISOString()}:\n  sleep 9`)).toBe(ok);
});

test('commands that succeeded before the run was killed are not run again', async () => {
  const { run, journal } = sessions();
  const atMs = Date.now();
  const lines = [
    { event: 'started', atMs, procedure: 'failback', subject: { target: { domain: 'orders' } } },
    { event: 'command_started', atMs, step: 'one', command: ['false'] },
    { event: 'command_ended', atMs, step: 'one', command: ['false'] },
  ];
  writeFileSync(journal, lines.map((line) => JSON.stringify(line)).join('\n'));
  const who = operator();
  expect(
    await run([step('one', { commands: [['false']] }), step('two', { commands: [['true']] })], who),
  ).toMatchObject({ ok: true });
  expect(who.text()).toContain('  Nothing to run: the commands succeeded in the earlier run.');
  expect(who.asked).toEqual(['Run it?']);
});

test('a signal while a check is awaited ends the run', async () => {
  const { run } = sessions();
  const never = { ...holds(no('not yet')), comesTrue: true };
  const pause = async () => void process.emit('SIGTERM');
  for (const one of [step('one', { requires: [never] }), step('one', { proves: [never] })])
    expect(await run([one], operator(), { pause })).toMatchObject({
      ok: false,
      msg: 'Do one: interrupted by a signal',
    });
  const slow = check('s', 'slow', () => {
    process.emit('SIGHUP');
    return new Promise<never>(() => {});
  });
  expect(await run([step('one', { needs: [slow] })], operator())).toMatchObject({
    ok: false,
    msg: 'interrupted by a signal',
  });
});

test.each([
  [
    'a command that ends by itself then was interrupted nevertheless',
    'exit 0',
    1,
    'sh was interrupted by a signal, and ended with exit status 0',
  ],
  ['a command that ignores the first is killed by the second', '', 2, 'sh ended with SIGKILL'],
])('signals are passed on: %s', async (_, trap, signals, fault) => {
  const started = join(newFolder(), 'started');
  const script = `trap '${trap}' TERM; touch "$0"; while :; do sleep 0.05; done`;
  const who = operator();
  const running = sessions().run([step('one', { commands: [['sh', '-c', script, started]] })], who);
  await until('the command runs', () => existsSync(started));
  for (let sent = 0; sent < signals; sent++) process.emit('SIGTERM');
  expect(await running).toMatchObject({ ok: false, msg: `Do one: ${fault}` });
  expect(who.lines.filter((line) => line.includes('asked to end'))).toEqual([
    '  sh has been asked to end; a second signal kills it.',
  ]);
});
