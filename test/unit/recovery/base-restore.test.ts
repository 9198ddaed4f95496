import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { restoreCommand } from '../../../src/agent/recovery/base-restore.ts';
import { newFolder } from '../../folder.ts';

const segment = '000000010000000000000003';

/** As PostgreSQL fills in a restore_command and runs it. */
const fetch = (command: string, file: string, to: string) =>
  execFileSync(
    'sh',
    ['-c', command.replace(/%([%fp])/g, (_, name: '%' | 'f' | 'p') => ({ '%': '%', f: file, p: to })[name])],
    { stdio: 'pipe' },
  );

test.each([
  ['as they are', segment, (bytes: Buffer) => bytes],
  ['compressed', `${segment}.gz`, (bytes: Buffer) => gzipSync(bytes)],
  ['in the folder of their log file', `${segment.slice(0, 16)}/${segment}`, (bytes: Buffer) => bytes],
  ['compressed, in a folder', `${segment.slice(0, 16)}/${segment}.gz`, (bytes: Buffer) => gzipSync(bytes)],
])(
  'segments are fetched %s, from a path that a shell and PostgreSQL would read otherwise',
  (_, name, written) => {
    const place = mkdtempSync(join(tmpdir(), "svc-agent-50% of it's $HOME-"));
    const content = Buffer.from('a segment');
    mkdirSync(join(place, name, '..'), { recursive: true });
    writeFileSync(join(place, name), written(content));
    const to = join(place, 'RECOVERYXLOG');
    fetch(restoreCommand(place)!, segment, `'${to.replaceAll("'", `'\\''`)}'`);
    expect(readFileSync(to)).toEqual(content);
    // The end of the log: PostgreSQL goes on when a file is not there.
    expect(() => fetch(restoreCommand(place)!, '000000010000000000000004', '/dev/null')).toThrow();
    rmSync(place, { recursive: true });
  },
);

test('the archive of a tool is left to the tool', () => {
  const place = newFolder();
  mkdirSync(join(place, segment.slice(0, 16)));
  writeFileSync(join(place, segment.slice(0, 16), `${segment}-${'a'.repeat(40)}.gz`), '');
  expect(restoreCommand(place)).toBeUndefined();
});
