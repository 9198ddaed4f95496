import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { LogOptions } from '../../../src/agent/config/types.ts';
import { createLog } from '../../../src/agent/own-log.ts';
import { AgentError } from '../../../src/core/errors.ts';
import { newFolder } from '../../folder.ts';

const place = newFolder(afterAll);
const options = (change: Partial<LogOptions>): LogOptions => ({
  level: 'info',
  encoding: 'json',
  stdout: false,
  levelKey: 'level',
  ...change,
});

function written(
  name: string,
  change: Partial<LogOptions>,
  use: (log: ReturnType<typeof createLog>['log']) => void,
): string {
  const outputFile = join(place, name);
  const { log, close } = createLog(options({ ...change, outputFile }));
  use(log);
  close();
  return readFileSync(outputFile, 'utf8');
}

describe('an entry of the agent’s own log', () => {
  test('has the spec’s fields', () => {
    const text = written('json.log', { levelKey: 'severity' }, (log) =>
      log.named('tail').write('warn', 'slow', { 'shard-id': 4 }),
    );
    const entry = JSON.parse(text) as Record<string, unknown>;
    expect(entry).toMatchObject({ severity: 'warn', msg: 'slow', logger: 'tail', 'shard-id': 4 });
    expect(new Date(String(entry.ts)).toISOString()).toBe(entry.ts);
  });

  test('keeps the whole chain of causes', () => {
    const cause = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' });
    const text = written('cause.log', {}, (log) =>
      log.write('error', 'commit failed', { error: new Error('write', { cause }) }),
    );
    expect(JSON.parse(text).error).toBe('write: ENOSPC: no space left');
  });

  test('says the same text once, although a cause repeats it', () => {
    const cause = new Error('certificate has expired', { cause: new Error('no peer') });
    const text = written('repeated.log', {}, (log) =>
      log.write('error', 'x', { error: new Error('certificate has expired', { cause }) }),
    );
    expect(JSON.parse(text).error).toBe('certificate has expired: no peer');
  });

  test('below the level is not written', () => {
    expect(written('level.log', { level: 'error' }, (log) => log.write('warn', 'no'))).toBe('');
  });

  test('is tab-separated in console encoding, one line whatever the message', () => {
    const text = written('console.log', { encoding: 'console' }, (log) =>
      log.named('tail').write('info', 'two\nlines', { n: 1 }),
    );
    expect(text).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z\tinfo\ttail\ttwo lines\t\{"n":1\}\n$/);
  });
});

describe('log.outputFile', () => {
  test.each([
    ['its directory is missing', join(place, 'nowhere', 'agent.log')],
    ['its directory is a file', join(place, 'json.log', 'agent.log')],
    ['a directory', place],
  ])('%s: refused', (what, outputFile) => {
    const open = () => createLog(options({ outputFile }));
    expect(open).toThrow(AgentError);
    expect(open).toThrow(`log.outputFile: ${what}, got`);
  });

  test.skipIf(process.getuid?.() === 0)('in a read-only directory is refused', () => {
    const directory = newFolder();
    chmodSync(directory, 0o500);
    expect(() => createLog(options({ outputFile: join(directory, 'agent.log') }))).toThrow(
      'its directory is not writable',
    );
  });
});
