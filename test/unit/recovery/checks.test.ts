import { expect, test } from 'vitest';
import {
  answerOf,
  type Check,
  type CheckAnswer,
  no,
  unknown,
  yes,
} from '../../../src/agent/recovery/check.ts';
import type { Checks } from '../../../src/agent/recovery/checks.ts';
import type { Subject } from '../../../src/agent/recovery/commands.ts';
import { asking, checksWhere, gauges, named, prints, rows } from '../../recovery-checks.ts';

const store = 'store/main/persistence';
const backup = ({ backupVerified }: Checks) => backupVerified();
const database = ({ storeUp }: Checks) => storeUp();
const server = ({ serverUp }: Checks) => serverUp();
const schema = ({ schema: ask }: Checks) => ask();
const counted = ({ workflowsCounted }: Checks) => workflowsCounted();
const newest = ({ newestRow }: Checks) => newestRow();
const listed = ({ workflowsListed }: Checks) => workflowsListed();

const ofStores = [
  ...asking(backup, [
    ['no recovery probe', {}, unknown('not configured: there is no probe recovery/main/persistence')],
    [
      'no chain',
      { 'recovery/main/persistence': { msg: 'no full backup', details: {} } },
      no('no full backup'),
    ],
    ['no details', { 'recovery/main/persistence': { msg: 'cut off' } }, no('cut off')],
    ['a chain', { 'recovery/main/persistence': { msg: '2m', details: { chain: {} } } }, yes('2m')],
  ]),
  ...(['ok', 'failed', 'unknown'] as const).flatMap((result) =>
    asking(backup, [
      [
        `a named backup: ${result}`,
        {},
        { holds: result === 'unknown' ? 'unknown' : result === 'ok', msg: '/b: read' },
        { subject: { backup: '/b' }, verifyNamed: async () => ({ result, msg: 'read' }) as never },
      ],
    ]),
  ),
  ...asking(database, [
    ['a store that answers', { [store]: {} }, yes('fine')],
    ['a store that does not', { [store]: { reason: 'refused', msg: 'closed' } }, no('closed')],
  ]),
  ...asking(server, [
    ['a server', { [store]: {} }, yes('main answers')],
    [
      'a server without the database',
      { [store]: { reason: 'database_missing' } },
      yes('main answers, without the database'),
    ],
    ['no server', { [store]: { reason: 'refused', msg: 'closed' } }, no('closed')],
  ]),
  ...asking(schema, [
    [
      'a schema that fits',
      { [store]: gauges('svc_store_schema_compatible', 1) },
      yes('as expected or newer'),
    ],
    [
      'a schema that is behind',
      {
        [store]: {
          ...gauges('svc_store_schema_compatible', 0),
          details: { checks: [{ check: 'own' }, { check: 'schema', found: 'found 0.7' }] },
        },
      },
      no('found 0.7'),
    ],
    [
      'a schema that nobody asks for',
      { [store]: { details: { checks: 'none' } } },
      unknown('set stores[].schema to let svc-agent check the version'),
    ],
    [
      'a schema beside other checks',
      { [store]: { details: { checks: [{ check: 'own', found: 'found 7' }] } } },
      unknown('set stores[].schema to let svc-agent check the version'),
    ],
  ]),
  ...asking(counted, [
    ['no count command', {}, unknown('set recovery.commands.countWorkflows to let svc-agent count them')],
    ['some workflows', {}, yes('12 workflows'), prints(' 12\n')],
    ['no workflow', {}, no('there are none'), prints('0')],
    ['a count that is a sentence', {}, unknown('printf did not print a number'), prints('12 rows')],
    ['a count that is no whole number', {}, unknown('printf did not print a number'), prints('a 12')],
    [
      'a count that fails, as where a table is missing',
      {},
      no('sh: exit status 1: relation missing'),
      { commands: named(['sh', '-c', 'echo relation missing >&2; exit 1']) },
    ],
    [
      'a count command that is missing',
      {},
      unknown(expect.stringContaining('no-such-program') as never),
      { commands: named(['no-such-program']) },
    ],
  ]),
];

const pointMs = Date.parse('2026-11-23T12:00:00Z');
const ofNewestRow = (
  printed: string,
  over: { recoveryPointMs?: number; subject?: Subject },
  answer: CheckAnswer,
) =>
  asking(newest, [[`a newest row of ${printed || 'nothing'}`, {}, answer, { ...prints(printed), ...over }]]);
const at = { recoveryPointMs: pointMs };
const rowText = (time: string) =>
  `the newest row is of ${time}, the recovery point is 2026-11-23T12:00:00.000Z`;

const ofRows = [
  ...asking(newest, [
    [
      'no command for the newest row',
      {},
      unknown('set recovery.commands.newestRow to let svc-agent compare it'),
    ],
    [
      'a command for the newest row that fails',
      {},
      no('sh: exit status 1: relation missing'),
      { commands: named(['sh', '-c', 'echo relation missing >&2; exit 1']) },
    ],
  ]),
  ...ofNewestRow('', at, unknown('recovery.commands.newestRow did not print a time')),
  ...ofNewestRow('never', at, unknown('recovery.commands.newestRow did not print a time')),
  ...ofNewestRow(' 1795435199.5\n', at, yes(rowText('2026-11-23T11:59:59.500Z'))),
  // A writer that was idle for five minutes is in use; one that was idle for longer shows nothing.
  ...ofNewestRow('2026-11-23T11:55:00Z', at, yes(rowText('2026-11-23T11:55:00.000Z'))),
  ...ofNewestRow(
    '2026-11-23T11:54:59Z',
    at,
    unknown(`${rowText('2026-11-23T11:54:59.000Z')}: nothing was written in between`),
  ),
  ...ofNewestRow('2026-11-23T12:30:00Z', at, yes(rowText('2026-11-23T12:30:00.000Z'))),
  ...ofNewestRow(
    '2026-11-23T11:00:00Z',
    {},
    unknown('the newest row is of 2026-11-23T11:00:00.000Z; the recovery point is not known'),
  ),
  // Rows from exactly the time of --until are left out, too.
  ...ofNewestRow(
    '2026-11-23T11:59:00Z',
    { ...at, subject: { until: '2026-11-23T11:59:00Z' } },
    no('the newest row is of 2026-11-23T11:59:00.000Z, after --until 2026-11-23T11:59:00Z'),
  ),
  ...ofNewestRow(
    '2026-11-23T11:58:59Z',
    { ...at, subject: { until: '2026-11-23T11:59:00Z' } },
    yes(rowText('2026-11-23T11:58:59.000Z')),
  ),
];

const ofService = [
  ...asking(listed, [
    ['no domain to list', {}, unknown('name a domain with --domain'), { subject: { domain: undefined } }],
    ['no client', {}, unknown('set recovery.client to let svc-agent list them')],
    ['no line', {}, unknown('orders lists no workflow'), prints('')],
    ['blank lines only', {}, unknown('orders lists no workflow'), prints('\n  \n')],
    ['a list as JSON', {}, yes('3 lines'), prints('[{"id": 1},\n{"id": 2},\n{"id": 3}]')],
    ['an empty list as JSON', {}, unknown('orders lists no workflow'), prints('[\n]')],
    ['an object as JSON, by its lines', {}, yes('2 lines'), prints('{\n"id": 1}')],
    ['two lines', {}, yes('2 lines'), prints('one\n\ntwo\n')],
  ]),
  ...asking(
    ({ healthy }) => healthy()[0]!,
    [['no health check', {}, unknown('no role has a health check: set services.history.health')]],
  ),
];

test.each([...ofStores, ...ofRows, ...ofService])('%s', async (_, asks, checks, answer) => {
  expect(await answerOf(asks(checks()))).toEqual(answer);
});

test('every other database and every role has a check of its own', async () => {
  const others = [
    ...rows,
    { name: 'store/main/visibility', kind: 'store' },
    { name: 'store/far/persistence', kind: 'store' },
  ] as const;
  const checks = checksWhere(
    {
      'store/main/visibility': {},
      'store/far/persistence': { reason: 'refused', msg: 'closed' },
      'health/history': {},
    },
    { rows: others },
  );
  const answers = async (asked: readonly Check[]) =>
    Object.fromEntries(
      await Promise.all(asked.map(async (each) => [each.text, (await answerOf(each)).holds])),
    );
  expect(await answers(checks.otherDatabasesUp())).toEqual({
    'visibility of main is there, too': true,
    'persistence of far is there, too': false,
  });
  expect(await answers(checks.healthy())).toEqual({
    'history is healthy': true,
    'matching is healthy': 'unknown',
  });
  expect(checks.workflowsListed().text).toBe('the service lists workflows of orders');
  expect(checksWhere({}, { subject: { domain: undefined } }).workflowsListed().text).toBe(
    'the service lists workflows of a domain',
  );
});

test('workers poll again once more polls are counted than at the first look', async () => {
  const polls = [undefined, 40, 40, 42];
  const check = checksWhere({}, { pollsSeen: async () => polls.shift() }).pollersBack();
  const answers: CheckAnswer[] = [];
  while (polls.length > 0) answers.push(await answerOf(check));
  expect(answers).toEqual([
    unknown('set services.matching.scrape to let svc-agent check it'),
    no('no poll has been counted yet'),
    no('no poll has been counted yet'),
    yes('2 polls since the start'),
  ]);
  // At night there may be nobody who works.
  expect(check.isAdvisory).toBe(true);
  expect(await answerOf(checksWhere({}).pollersBack())).toEqual(
    unknown('set services.matching.scrape to let svc-agent check it'),
  );
});
