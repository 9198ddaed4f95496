import { expect, test } from 'vitest';
import { checkBy, kept } from '../domain-command.ts';

test('a command that fails says why, and nothing of the domain', async () => {
  const script = 'echo "ActiveClusterName: dc2"; echo "Error: no such domain: $0" >&2; exit 3';
  const found = await checkBy(['sh', '-c', script, '{domain}']);
  expect(found).toEqual({
    reason: 'command_failed',
    msg: 'sh: exit status 3: Error: no such domain: orders',
    remember: kept,
  });
});
