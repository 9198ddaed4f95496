import { expect, test } from 'vitest';
import { ran, script } from '../command.ts';

test.each(['stdout', 'stderr'])('100 MB on %s: ended, and not kept', async (stream) => {
  const text = `const line = "x".repeat(1e6); let n = 0;
    const more = () => { if (n++ < 100) process.${stream}.write(line, more); }; more();`;
  const before = process.memoryUsage().arrayBuffers;
  const { reason, msg } = await ran(script(text), { maxBytes: 10_000 });
  expect(reason).toBe('too_large');
  expect(msg).toContain('more than 10000 bytes');
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50e6);
});
