import { expect, test } from 'vitest';
import { checkBy, kept } from '../domain-command.ts';

test('a command that prints 100 MB is ended at its first megabyte', async () => {
  const found = await checkBy(['head', '-c', '100000000', '/dev/zero']);
  expect(found).toEqual({
    reason: 'too_large',
    msg: 'head: more than 1048576 bytes on standard output',
    remember: kept,
  });
});

test('a megabyte of anything is read, and is no description', async () => {
  const found = await checkBy(['head', '-c', '1048576', '/dev/zero']);
  expect(found).toMatchObject({
    reason: 'invalid_answer',
    msg: 'the output is not a description of a domain: nothing',
  });
});
