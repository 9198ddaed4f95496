import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { advisory, check, no, ofExecution, unknown, yes } from '../../../src/agent/recovery/check.ts';
import { newFolder } from '../../folder.ts';
import { holds, operator, sessions, step } from '../../recovery-session.ts';
import { until } from '../../until.ts';

test('steps are done in order, each with its proofs; what has no result is told', async () => {
  const { run, events } = sessions();
  const who = operator();
  const steps = [
    step('one', { commands: [['true']], proves: [holds(yes('fine'))] }),
    step('two', {
      byHand: 'turn it',
      proves: [holds(unknown('no evidence')), advisory('a', 'advice', async () => no('not yet'))],
    }),
    step('three'),
  ];
  expect(await run(steps, who)).toMatchObject({
    ...{ ok: true, left: [], msg: 'all steps are done' },
    notProved: ['check c: no evidence', 'advice: not yet'],
  });
  expect(events().map(({ event, step: id }) => [event, id].filter(Boolean).join(' '))).toEqual([
    ...['started', 'step_started one', 'command_started one', 'command_ended one', 'step_done one'],
    ...['step_started two', 'step_done two', 'step_started three', 'step_done three', 'done'],
  ]);
  expect(events().filter(({ byHand }) => byHand)).toMatchObject([{ event: 'step_started', step: 'two' }]);
  expect(who.text()).toContain('\nStep 2 of 3: Do two\nWhy two.\n  By hand: turn it\n');
  expect(who.text()).toContain('  $ true\n  ok      check c: fine\n');
  expect(who.text()).toContain('  unknown check c: no evidence\n  FAILED  advice: not yet\n');
  expect(who.asked).toEqual(['Run it?', 'Is it done?']);
  expect(who.text()).toMatch(/\nStep 3 of 3: Do three\nWhy three\.$/);
});

test.each([
  [true, { ok: true }],
  [false, { ok: false, msg: 'Do one: not done' }],
])(
  'without --execute the operator runs the commands, and says whether they are done: %s',
  async (answer, result) => {
    const { run, events } = sessions();
    const who = operator(answer);
    const one = step('one', { commands: [['no-such-program']], byHand: 'turn it' });
    expect(await run([one], who, { execute: false })).toMatchObject(result);
    expect(who.lines.at(-1)).toBe('  $ no-such-program');
    expect(who.asked).toEqual(['Is it done?']);
    // What is not done may be half done.
    expect(events()[1]).toMatchObject({ event: 'step_started', step: 'one', byHand: true });
  },
);

test('what is refused is refused before anything is changed, each check once', async () => {
  const { run, events } = sessions();
  let times = 0;
  const counted = check('n', 'counted', async () => {
    times++;
    return yes('fine');
  });
  const steps = [
    step('one', { needs: [counted, holds(no('missing'))] }),
    step('two', { needs: [counted, holds(no('missing'))] }),
  ];
  const who = operator();
  expect(await run(steps, who)).toMatchObject({
    ok: false,
    left: [],
    msg: 'refused before anything was changed: check c: missing; --force REASON overrides this',
  });
  expect(times).toBe(1);
  expect(who.lines).toEqual([
    '\nBefore anything is changed:',
    '  ok      counted: fine',
    '  FAILED  check c: missing',
  ]);
  expect(events().map(({ event }) => event)).toEqual(['started', 'stopped']);
});

test.each([
  [
    'a check of a program that the operator runs',
    ofExecution(holds(no('missing'))),
    { execute: false },
    true,
  ],
  ['a check of a program that the agent runs', ofExecution(holds(no('missing'))), {}, false],
  ['an advice without an answer', advisory('a', 'advice', async () => unknown('?')), {}, true],
  ['an advice that does not hold', advisory('a', 'advice', async () => no('full')), {}, false],
  ['a check that throws', check('t', 'throws', () => Promise.reject(new Error('broken'))), {}, false],
  ['a reason for what does not hold', holds(no('missing')), { force: 'a test' }, true],
  [
    'a reason for what nothing overrides',
    { ...holds(no('missing')), isNeverForced: true },
    { force: 'a test' },
    false,
  ],
])('%s', async (_, need, over, ok) => {
  const { run, events } = sessions();
  expect(await run([step('one', { needs: [need] })], operator(), over)).toMatchObject({ ok });
  const forced = events().filter(({ event }) => event === 'forced');
  expect(forced).toEqual(
    'force' in over && ok ? [expect.objectContaining({ step: 'one', check: 'c', reason: 'a test' })] : [],
  );
});

test('with nobody there, a step that needs a person is refused at the beginning', async () => {
  const asks = [
    [
      step('hand', { byHand: 'turn it\nand more' }),
      {},
      'Do hand: it has to be done by hand; continue without --yes. turn it',
    ],
    [
      step('run', { commands: [['true']] }),
      { execute: false },
      'Do run: it has to be done by hand; add --execute, or continue without --yes',
    ],
    [
      step('name', { commands: [['true']], confirm: 'main' }),
      {},
      'Do name: main was not confirmed; add --confirm main',
    ],
    [step('done', { byHand: 'turn it', isDone: holds(yes('there')) }), {}, undefined],
    [
      step('undone', { byHand: 'turn it', isDone: holds(no('not there')) }),
      {},
      'Do undone: it has to be done by hand; continue without --yes. turn it',
    ],
    [step('text'), {}, undefined],
  ] as const;
  for (const [asked, over, msg] of asks) {
    const found = await sessions().run([step('first'), asked], operator(false, true), over);
    const whole = msg && `refused before anything was changed: ${msg}; --force REASON overrides this`;
    expect(found).toMatchObject(
      msg === undefined
        ? { ok: true }
        : { ok: false, msg: expect.stringContaining(whole!.split('; --force')[0]!) },
    );
  }
});

test.each([
  [{ byHand: 'turn it' }, true, 'continue without --yes once it is done'],
  [{ commands: [['true']] }, false, 'add --execute, or continue without --yes'],
])(
  'with nobody there, nobody says that work was done which was needless at first: %j',
  async (work, execute, what) => {
    const answers = [yes('there'), no('gone')];
    const isDone = check('d', 'done', async () => answers.shift()!);
    expect(
      await sessions().run([step('one', { ...work, isDone })], operator(true, true), { execute }),
    ).toMatchObject({ ok: false, msg: `Do one: it has to be done by hand; ${what}` });
  },
);

test('with nobody there, commands run without a question that anyone could answer with no', async () => {
  const who = operator(true, true);
  expect(
    await sessions().run([step('one', { commands: [['true'], ['true', 'x']], confirm: 'main' })], who),
  ).toMatchObject({ ok: true });
  expect(who.asked).toEqual([
    ...['This cannot be undone: main', 'This cannot be undone: main'],
    ...['Run command 1 of 2?', 'Run command 2 of 2?'],
  ]);
  const harmless = operator(true, true);
  expect(await sessions().run([step('one', { commands: [['true']] })], harmless)).toMatchObject({ ok: true });
  expect(harmless.asked).toEqual(['Run it?']);
  // Each command is shown once, when it runs.
  expect(who.lines.filter((line) => line.startsWith('  $'))).toEqual(['  $ true', '  $ true x']);
});

test.each([
  [
    'a command that fails',
    step('one', { commands: [['false'], ['true']] }),
    true,
    'Do one: false ended with exit status 1',
  ],
  [
    'a command that cannot be started',
    step('one', { commands: [['no-such-program']] }),
    true,
    /^Do one: no-such-program cannot be started: .*ENOENT/,
  ],
  ['a no before a command', step('one', { commands: [['true']] }), false, 'Do one: not run'],
  ['a no to what was to be done by hand', step('one', { byHand: 'turn it' }), false, 'Do one: not done'],
  [
    'a name that was not typed',
    step('one', { commands: [['true']], confirm: 'main' }),
    false,
    'Do one: main was not confirmed',
  ],
  [
    'a proof that does not hold',
    step('one', { proves: [holds(no('down'))] }),
    true,
    'Do one: the check "check c" failed: down',
  ],
  [
    'a condition that does not hold',
    step('one', { requires: [holds(no('alive'))] }),
    true,
    'Do one: refused: check c: alive; --force REASON overrides this',
  ],
  [
    'a condition without an answer',
    step('one', { requires: [holds(unknown('?'))] }),
    true,
    'Do one: refused: check c: ?; --force REASON overrides this',
  ],
  [
    'a condition that fails meanwhile',
    step('one', { byHand: 'turn it', watches: holds(no('a role is back')) }),
    true,
    'Do one: the check "check c" failed while the step was running, so the step has to be done again: a role is back',
  ],
])('%s stops the run', async (_, one, answer, msg) => {
  const { run, events } = sessions();
  const found = await run([one, step('two')], operator(answer));
  expect(found).toMatchObject({ ok: false, msg: typeof msg === 'string' ? msg : expect.stringMatching(msg) });
  expect(events().at(-1)).toMatchObject({ event: 'stopped', msg: found.msg });
  expect(events().filter(({ event }) => event === 'step_done')).toEqual([]);
});

const roleIsBack = { ok: false, msg: expect.stringContaining(': a role is back') };
test.each([
  ['holds all the time', () => false, { ok: true }],
  ['fails at the second look', (looks: number) => looks === 2, roleIsBack],
  // There is one more look after the end of the work.
  ['fails once the work is done', (looks: number) => looks > 3, roleIsBack],
])('a condition that %s is watched from the start of the work to its end', async (_, fails, result) => {
  let looks = 0;
  let end = () => {};
  const ended = new Promise<boolean>((resolve) => {
    end = () => resolve(true);
  });
  const watches = check('w', 'watched', async () => {
    looks++;
    if (looks === 3 || fails(looks)) end();
    return fails(looks) ? no('a role is back') : yes('down');
  });
  const who = { ...operator(), ask: () => ended };
  const pauses: number[] = [];
  const pause = async (ms: number) => void pauses.push(ms);
  expect(await sessions().run([step('one', { byHand: 'turn it', watches })], who, { pause })).toMatchObject(
    result,
  );
  // The store and the roles are asked once per second.
  expect(pauses.length).toBeGreaterThan(0);
  expect(pauses).toEqual(Array(looks - 1).fill(1000));
});

test('a command that runs for long says so', async () => {
  const end = join(newFolder(), 'end');
  const who = operator();
  const one = step('one', { commands: [['sh', '-c', 'until test -e "$0"; do sleep 0.05; done', end]] });
  const running = sessions().run([one], who, { noticeMs: 1 });
  await until('it says so', () => who.text().includes('sh is still running after'));
  writeFileSync(end, '');
  expect(await running).toMatchObject({ ok: true });
  expect(who.text()).toMatch(/^ {2}sh is still running after \d+m?s; Ctrl-C ends it\.$/m);
});

test('a reason overrides conditions at the step and while it is done, and is on record', async () => {
  const { run, events } = sessions();
  const one = step('one', {
    byHand: 'turn it',
    requires: [holds(no('alive'), 'r')],
    watches: holds(no('back'), 'w'),
  });
  expect(await run([one], operator(), { force: 'a test' })).toMatchObject({ ok: true });
  expect(events().filter(({ event }) => event === 'forced')).toMatchObject([
    { step: 'one', check: 'r', msg: 'check r: alive', reason: 'a test' },
    { step: 'one', check: 'w', msg: expect.stringContaining('back'), reason: 'a test' },
  ]);
});

test('what comes true within a minute is awaited, and not where a reason overrides it', async () => {
  let times = 0;
  const late = (after: number) => ({
    ...check('l', 'late', async () => (times++ < after ? no('not yet') : yes('now'))),
    comesTrue: true,
  });
  const pauses: number[] = [];
  const pause = async (ms: number) => void pauses.push(ms);
  expect(await sessions().run([step('one', { requires: [late(30)] })], operator(), { pause })).toMatchObject({
    ok: true,
  });
  expect(pauses).toEqual(Array(30).fill(2000));
  times = 0;
  expect(await sessions().run([step('one', { requires: [late(31)] })], operator(), { pause })).toMatchObject({
    ok: false,
  });
  times = 0;
  expect(
    await sessions().run([step('one', { requires: [late(1)] })], operator(), { force: 'a test' }),
  ).toMatchObject({ ok: true });
  expect(times).toBe(1);
  times = 0;
  expect(await sessions().run([step('one', { proves: [late(30)] })], operator())).toMatchObject({
    ok: true,
    notProved: [],
  });
});

test.each([
  ['holds', yes('now')],
  ['is not known', unknown('?')],
])('what %s is asked once', async (_, answer) => {
  let times = 0;
  const proof = check('p', 'proof', async () => {
    times++;
    return answer;
  });
  expect(await sessions().run([step('one', { proves: [proof] })], operator())).toMatchObject({ ok: true });
  expect(times).toBe(1);
});

test('a command that cannot be put on record ends the run after the command, with what it leaves', async () => {
  const { run, events } = sessions();
  const ended: boolean[] = [];
  const lock = {
    commandStarts: () => ({}),
    commandStarted: () => {
      throw new Error('the disk is full');
    },
    commandEnded: (succeeded: boolean) => void ended.push(succeeded),
  };
  const who = operator();
  const one = step('one', { commands: [['true']], leaves: { what: 'It is half done.', undo: 'Undo it.' } });
  await expect(run([one], who, { lock })).rejects.toThrow('the disk is full');
  expect(ended).toEqual([true]);
  expect(who.lines.at(-1)).toBe('It is half done. Undo it.');
  expect(events().at(-1)).toMatchObject({ event: 'command_started' });
});

test('a step whose work is done already runs nothing, and is proved nevertheless', async () => {
  const { run, events } = sessions();
  const one = step('one', {
    commands: [['false']],
    isDone: holds(yes('it is there')),
    proves: [holds(unknown('?'), 'p')],
  });
  const who = operator();
  expect(await run([one], who)).toMatchObject({ ok: true, notProved: ['check p: ?'] });
  expect(who.text()).toContain('  Nothing to run: it is there.');
  expect(events().some(({ event }) => event === 'step_started')).toBe(false);
});
