import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { eventRoutes } from '../../../src/agent/admin/announcements.ts';
import type { Change } from '../../../src/agent/report.ts';
import type { Reply } from '../../../src/reporters/listen/http.ts';
import { manualClock } from '../../clock.ts';

/** The result of an announcement at midnight with the right token, or with these credentials. */
async function announced(body: string, authorization: string | undefined = 'Bearer let-me-in') {
  const changes: Change[] = [];
  const drops: string[] = [];
  const answers: number[] = [];
  const reply = { send: (code: number) => void answers.push(code) } as unknown as Reply;
  const { '/event': route } = eventRoutes(
    { events: { token: 'let-me-in' } },
    {
      readSecret: async (secret) => String(secret),
      clock: manualClock(Date.UTC(2026, 0, 1)),
      drops: { count: (_, reason) => void drops.push(reason) },
      announce: async (change) => void changes.push(change),
    },
  );
  const message = Object.assign(Readable.from([Buffer.from(body)]), { headers: { authorization } });
  await route!.handle({ url: new URL('http://listener/event'), message: message as never }, reply);
  return { status: answers[0], change: changes[0], drops };
}

const at = '2026-01-01T00:00:00.000Z';
const letters = (count: number) => 'x'.repeat(count);

test.each<[object, Omit<Change, 'at'>]>([
  [{ text: 'history 1.4.2' }, { kind: 'deploy', what: 'history 1.4.2' }],
  [
    { kind: 'note', text: ' disks are slow ' },
    { kind: 'note', what: 'disks are slow' },
  ],
  [{ text: letters(200) }, { kind: 'deploy', what: letters(200) }],
  [
    { kind: 'maintenance', text: 'disks', seconds: 1 },
    { kind: 'maintenance', what: 'disks', until: '2026-01-01T00:00:01.000Z' },
  ],
  [
    { kind: 'maintenance', text: 'disks', seconds: 604_800 },
    { kind: 'maintenance', what: 'disks', until: '2026-01-08T00:00:00.000Z' },
  ],
  [
    { kind: 'maintenance', text: 'done', seconds: 0 },
    { kind: 'maintenance', what: 'done', until: at },
  ],
  [
    { kind: 'exit', role: 'history', text: 'killed' },
    { kind: 'exit', what: 'history ended: killed', role: 'history' },
  ],
])('%j is announced', async (body, change) => {
  expect(await announced(JSON.stringify(body))).toEqual({
    status: 200,
    change: { at, ...change },
    drops: [],
  });
});

test.each([
  ['null'],
  ['"text"'],
  ['{"text": 7}'],
  ['{"text": "  "}'],
  [JSON.stringify({ text: letters(201) })],
  [`{"text": "x", "more": "${letters(4096)}"}`],
  ['{"kind": "maintenance", "text": "disks", "seconds": 0.5}'],
  ['{"kind": "maintenance", "text": "disks", "seconds": 604801}'],
  ['{"kind": "maintenance", "text": "disks", "seconds": -1}'],
  ['{"kind": "maintenance", "text": "disks"}'],
  ['{"kind": "maintenance", "text": "disks", "seconds": "600"}'],
  ['{"kind": "exit", "text": "killed", "role": ""}'],
  ['{"kind": "exit", "text": "killed", "role": 7}'],
  [JSON.stringify({ kind: 'exit', text: 'killed', role: letters(201) })],
])('%s is refused', async (body) => {
  expect(await announced(body)).toEqual({ status: 400, change: undefined, drops: [] });
});

test.each(['Bearer other', 'Basic bGV0LW1lLWlu', ''])(
  'with the credentials %j nothing is announced',
  async (credentials) => {
    expect(await announced('{"text": "x"}', credentials)).toEqual({
      ...{ status: 401, change: undefined, drops: ['unauthorized'] },
    });
  },
);
