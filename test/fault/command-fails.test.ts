import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ran, script } from '../command.ts';
import { newFolder } from '../folder.ts';

test('another exit status: the end of it is told, its lines in one, the arguments not', async () => {
  const text = 'console.error("first\\n\\tsecond\\u001b[31m"); process.exit(7)';
  const { reason, msg } = await ran(script(text, 'hunter2'));
  expect(reason).toBe('command_failed');
  expect(msg).toBe(`${process.execPath}: exit status 7: first second [31m`);
});

test('much on standard error is cut', async () => {
  const { msg } = await ran(script('process.stderr.write("x".repeat(9000)); process.exitCode = 1'));
  expect(msg!.length).toBeLessThan(process.execPath.length + 400);
});

test('it ends by a signal', async () => {
  const { reason, msg } = await ran(script('process.kill(process.pid, "SIGKILL")'));
  expect([reason, msg]).toEqual(['command_failed', `${process.execPath}: ended by SIGKILL`]);
});

test('a program that is not there, or is none', async () => {
  const folder = newFolder();
  const plain = join(folder, 'plain');
  writeFileSync(plain, 'no program');
  chmodSync(plain, 0o600);
  expect(await ran([join(folder, 'missing')])).toMatchObject({ reason: 'command_missing' });
  expect(await ran(['svc-agent-no-such-program'])).toMatchObject({ reason: 'command_missing' });
  expect(await ran([plain])).toMatchObject({ reason: 'command_missing' });
  expect((await ran(['']))?.reason).toMatch(/^command_/);
  expect((await ran([]))?.reason).toMatch(/^command_/);
  expect((await ran([process.execPath, 'a\0b']))?.reason).toBe('command_failed');
});
