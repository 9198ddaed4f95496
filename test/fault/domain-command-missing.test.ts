import { expect, test } from 'vitest';
import { checkBy, kept } from '../domain-command.ts';

test('a program that is not there', async () => {
  const found = await checkBy(['svc-no-such-client', '{domain}']);
  expect(found).toMatchObject({ reason: 'command_missing', remember: kept });
  expect(found.msg).toContain('svc-no-such-client');
});
