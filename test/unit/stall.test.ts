import { expect, test, vi } from 'vitest';
import type { TestCase, TestModule } from 'vitest/node';
import Stall from '../stall.ts';

test('a run is ended when no test has ended for a quarter of an hour, and what was running is printed', () => {
  const output: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => output.push(String(text)) > 0);
  let nowMs = 0;
  const ended = vi.fn();
  const stall = new Stall({}, () => nowMs, ended);
  const minutes = (count: number) => {
    nowMs += count * 60_000;
    stall.check();
  };
  const [slow, quick] = ['test/slow.test.ts', 'test/quick.test.ts'].map(
    (relativeModuleId) => ({ relativeModuleId }) as TestModule,
  );
  const [first, second] = ['the first', 'the second'].map(
    (fullName) => ({ fullName, module: slow }) as unknown as TestCase,
  );
  try {
    stall.onTestRunStart();
    stall.onTestModuleStart(slow!);
    stall.onTestModuleStart(quick!);
    stall.onTestCaseReady(first!);
    minutes(14);
    stall.onTestCaseResult(first!);
    stall.onTestCaseReady(second!);
    minutes(14);
    stall.onTestModuleEnd(quick!);
    minutes(14);
    expect([ended.mock.calls.length, output]).toEqual([0, []]);
    minutes(1);
  } finally {
    stall.onTestRunEnd();
    write.mockRestore();
  }
  expect(ended).toHaveBeenCalledOnce();
  const text = output.join('');
  expect(text).toContain('failed: test/slow.test.ts: the file did not end');
  expect(text).toContain('the second');
  expect(text).not.toMatch(/quick|the first/);
});
