import { expect, test } from 'vitest';
import { argumentHider } from '../../src/core/known-secrets.ts';
import { checkBy } from '../domain-command.ts';

// Tools show the command line with their usage, and servers what they were asked. What is secret in it is shown nowhere.

const secret = "hunter2's";

test.each([
  ['an error', 'echo "usage: $0 $*" >&2; exit 1'],
  ['an answer', 'echo "usage: $0 $*"'],
])('%s that repeats the arguments', async (_, script) => {
  const args = ['--address', 'db1:7933', '--password', secret, '-H', `Authorization: Bearer ${secret}`];
  const { msg } = await checkBy(['sh', '-c', script, 'cli', ...args]);
  expect(msg).toContain('usage: cli --address db1:7933');
  expect(msg).not.toContain('hunter2');
});

test.each([
  ['of an option', ['cli', '--db-password', secret, 'describe']],
  ['in an option', ['cli', `--token=${secret}`]],
  ['of a variable for env', ['env', `PGPASSWORD=${secret}`, 'pg_dump']],
  ['of a connection string', ['psql', `host=db1 password="${secret}" user=svc`]],
  ['of a URL', ['cli', `postgres://svc:${encodeURIComponent(secret)}@db1/svc`]],
  ['of a query', ['curl', `http://db1/?api_key=${encodeURIComponent(secret)}&x=1`]],
  ['of a header', ['curl', '-H', `X-Api-Key: ${secret}`]],
  ['of curl', ['curl', '-u', `svc:${secret}`]],
  ['of -p', ['cqlsh', '-u', 'svc', '-p', secret]],
  ['of -p in one word', ['/usr/bin/mysqldump', `-p${secret}`]],
  ['of a variable', ['cli', secret], { ADMIN_TOKEN: secret }],
])('a secret %s is told from its place', (_, command: string[], env: Record<string, string> = {}) => {
  const hide = argumentHider(command, env);
  const said = [secret, JSON.stringify(secret), encodeURIComponent(secret), btoa(secret)];
  expect(hide(`refused: ${said.join(', ')}`)).toMatch(/^refused: \*\*\*, "?\*\*\*"?, \*\*\*, \*\*\*=*$/);
});

test.each([
  [['cli', '--address', 'db1:7933', 'describe', 'orders'], 'no domain orders at db1:7933; see describe'],
  [['psql', '-p', '5432', '-h', 'db1'], 'connection to db1, port 5432 failed'],
  [['mkdir', '-p', '/backups/main'], 'cannot create /backups/main'],
  [['pgbackrest', '--password-file', '/etc/secret', 'info'], '/etc/secret: no such file'],
  [['nc', '-p8125'], 'port 8125 is in use'],
  [['cli', '--token', 'abc'], 'no abc: shorter texts are parts of other words'],
])('what is not secret in %j is shown', (command, said) => {
  expect(argumentHider(command, { HOST: 'db1', PASSWORD: 'not in the command' })(said)).toBe(said);
});
