import { expect, test } from 'vitest';
import { ran, script } from '../command.ts';

test('gives both outputs; arguments go as they are, without a shell', async () => {
  const text = 'process.stdout.write(JSON.stringify(process.argv.slice(1))); process.stderr.write("aside é")';
  const args = ['a b', '$HOME', '; rm -rf /', '"', '', '*'];
  const { stdout, stderr } = await ran(script(text, ...args));
  expect(JSON.parse(stdout!)).toEqual(args);
  expect(stderr).toBe('aside é');
});

test('the environment is small, and holds no secret of the agent', async () => {
  process.env.SVC_AGENT_TEST_SECRET = 'hunter2';
  try {
    const { stdout } = await ran(script('console.log(JSON.stringify(process.env))'), {
      env: { EXTRA: 'more' },
    });
    expect(stdout).not.toContain('hunter2');
    expect(JSON.parse(stdout!)).toMatchObject({ EXTRA: 'more', PATH: process.env.PATH });
  } finally {
    delete process.env.SVC_AGENT_TEST_SECRET;
  }
});

test('nothing can be read from standard input', async () => {
  const text =
    'let n = 0; process.stdin.on("data", (d) => { n += d.length }).on("end", () => console.log("read", n))';
  expect((await ran(script(text))).stdout).toBe('read 0\n');
});

test('all that is allowed is taken, to the byte', async () => {
  const text = 'process.stdout.write("x".repeat(1e6))';
  expect((await ran(script(text), { maxBytes: 1e6 })).stdout).toHaveLength(1e6);
  expect((await ran(script(text), { maxBytes: 1e6 - 1 })).reason).toBe('too_large');
});
