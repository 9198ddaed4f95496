import { describe, expect, test } from 'vitest';
import { createCounting, feed } from '../../counting.ts';

/** The events that these lines cause. */
function heard(services: readonly string[], ...lines: string[]): string[] {
  const events: string[] = [];
  const options = Object.fromEntries(services.map((service) => [service, {}]));
  const counting = createCounting(options, [...services], {
    logged: (service) => events.push(`${service} lives`),
    started: (service, line) => events.push(`${service}: ${line}`),
  });
  feed(counting.open(), ...lines.map((line) => `${line}\n`));
  return events;
}

const entry = (msg: unknown, level = 'info') => JSON.stringify({ level, msg, service: 'svc-history' });

describe('lines of a start', () => {
  test.each([
    'service started',
    'Starting service',
    'Starting service history',
    'Starting service svc-matching',
    'frontend started',
    'worker started',
  ])('%s', (msg) => {
    expect(heard(['history'], entry(msg))).toEqual([`history: ${msg}`, 'history lives']);
  });

  test.each([
    ['another case', 'Service started'],
    ['the beginning of another message', 'Starting service discovery'],
    ['the beginning of one', 'service starte'],
    ['another role', 'archiver started'],
    ['in the middle', 'the history started'],
    ['longer', `service started${' '.repeat(60)}`],
    ['no text', { text: 'service started' }],
    ['a number', 12345678901234],
    ['empty', ''],
  ])('none: %s', (_, msg) => {
    expect(heard(['history'], entry(msg))).toEqual(['history lives']);
  });

  test('life is told once, and each start', () => {
    const lines = [entry('Task processed'), entry('service started'), entry('Task processed')];
    expect(heard(['history'], ...lines, ...lines)).toEqual([
      'history lives',
      'history: service started',
      'history: service started',
    ]);
  });

  test('in a shared file it is the service that the line names', () => {
    expect(heard(['frontend', 'history'], entry('service started'))).toEqual([
      'history: service started',
      'history lives',
    ]);
  });

  test('lines that are no entries tell nothing', () => {
    expect(heard(['history'], '', '{"msg":', 'service started')).toEqual([]);
  });
});
