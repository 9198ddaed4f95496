import { expect, test } from 'vitest';
import { answerOf, type Check } from '../../../src/agent/recovery/check.ts';
import { createGuard } from '../../../src/agent/recovery/guard.ts';
import { freePort } from '../../ports.ts';
import { storeOn } from '../../store-probe.ts';

type Role = { name: string; selected: boolean; health?: object };

const role = (name: string, over: Partial<Role> = {}): Role => ({
  name,
  selected: true,
  health: {},
  ...over,
});

function guardOf(
  roles: readonly Role[],
  found: Readonly<Record<string, { reason?: string; msg: string }>>,
  { port, database }: { port?: number; database?: string } = { database: 'svc' },
) {
  return createGuard({
    services: roles as never,
    store: port === undefined ? undefined : storeOn(port, { password: 'secret' as never }),
    database,
    runProbe: async (name) => {
      const finding = found[name];
      return finding && ({ ok: finding.reason === undefined, ...finding } as never);
    },
    readSecret: async (text) => String(text),
  });
}

const answers = async (checks: readonly Check[]) =>
  Object.fromEntries(
    await Promise.all(
      checks.map(async (each) => {
        const { holds, msg } = await answerOf(each);
        return [each.id, `${holds}: ${msg}`] as const;
      }),
    ),
  );

const refused = { reason: 'refused', msg: 'closed' };
const both = [role('history'), role('frontend')];

test.each([
  [
    'every role refuses connections',
    both,
    { 'health/history': refused, 'health/frontend': refused },
    'true: history, frontend: connections are refused',
  ],
  [
    'a role answers',
    both,
    { 'health/history': refused, 'health/frontend': { msg: 'serving' } },
    'false: frontend still answers: serving; stop it',
  ],
  [
    'a role does not answer in time, and may still write',
    both,
    { 'health/history': { reason: 'too_slow', msg: 'no answer' }, 'health/frontend': refused },
    'false: history may still run: no answer; only a refused connection shows that it is stopped',
  ],
  ['a probe is missing', both, { 'health/history': refused }, 'unknown: there is no probe health/frontend'],
  [
    'a role has no health check',
    [role('history'), role('worker', { health: undefined })],
    { 'health/history': refused },
    'unknown: set services.worker.health to let svc-agent check the role, and list it in roles',
  ],
  [
    'history is not watched',
    [role('frontend'), role('history', { selected: false })],
    { 'health/frontend': refused },
    'unknown: set services.history.health to let svc-agent check the role, and list it in roles',
  ],
  [
    'a role of another agent',
    [role('history'), role('worker', { selected: false, health: undefined })],
    { 'health/history': refused },
    'true: history: connections are refused',
  ],
])('%s', async (_, roles, found, answer) => {
  const { isDown, staysDown } = guardOf(roles, found);
  const asked = isDown();
  expect((await answers(asked)).services_stopped).toBe(answer);
  expect(await answers([staysDown()])).toEqual({ services_stopped: answer });
  // Roles take a while to stop.
  expect(asked.every(({ comesTrue }) => comesTrue)).toBe(true);
});

test('a store that is not configured shows no session, and one that refuses connections has none', async () => {
  const down = guardOf(both, {}, { port: await freePort(), database: 'svc' });
  expect((await answers(down.isDown())).no_sessions).toBe('true: the store refuses connections');
  expect(await answers(down.canBeShown())).toEqual({
    roles_watched: 'true: history, frontend',
    sessions_visible: 'true: the store refuses connections',
  });
  const nameless = guardOf(both, {}, { port: await freePort() });
  expect((await answers(nameless.isDown())).no_sessions).toBe('unknown: the store has no such database');
  const none = guardOf([role('frontend')], {});
  expect((await answers(none.isDown())).no_sessions).toBe('unknown: the store has no such database');
  expect(await answers(none.canBeShown())).toEqual({
    roles_watched:
      'unknown: set services.history.health to let svc-agent check the role, and list it in roles',
    sessions_visible:
      "unknown: the store has no such database; svc-agent probe --print-grants prints what the agent's user needs",
  });
});
