import { expect, test } from 'vitest';
import { ran, script } from '../command.ts';

test.each(['stdout', 'stderr'])('output without end on %s: the command is ended', async (stream) => {
  const text = `const line = "x".repeat(1e6);
    const more = () => process.${stream}.write(line, more); more();`;
  const { reason, msg } = await ran(script(text), { maxBytes: 10_000 });
  expect(reason).toBe('too_large');
  expect(msg).toContain('more than 10000 bytes');
});
