import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { newFolder } from '../../folder.ts';
import { isInstalled } from '../../installed.ts';
import { root } from '../../unit/house/imports.ts';

const hasLogrotate = isInstalled('logrotate');
const hasBusybox = isInstalled('busybox', ['sh', '-c', 'true']);
const script = join(root, 'deploy/kubernetes/components/log-volume/rotate.sh');
const dayS = 86_400;

let logs: string;
beforeEach(() => {
  logs = newFolder();
});

const path = (name: string) => join(logs, name);
const text = (name: string) => readFileSync(path(name), 'utf8');
const agedDays = (name: string, days: number) => {
  const then = Date.now() / 1000 - days * dayS;
  utimesSync(path(name), then, then);
};

const shells = [
  { shell: ['sh'], isThere: true },
  { shell: ['busybox', 'sh'], isThere: hasBusybox },
];
describe.each(shells)(
  'the rotation beside a role, by $shell',
  ({ shell: [program = '', ...args], isThere }) => {
    const once = (env: Record<string, string> = {}) => {
      const { status, stderr } = spawnSync(program, [...args, script, '--once'], {
        encoding: 'utf8',
        env: { PATH: process.env.PATH ?? '', LOG_DIR: logs, MAX_BYTES: '10', KEEP: '2', ...env },
      });
      return { status, stderr };
    };
    const well = { status: 0, stderr: '' };

    test.skipIf(!isThere)('copies and truncates the very file, keeps so many, oldest go first', () => {
      writeFileSync(path('history.log'), 'first 12345\n');
      const { ino } = statSync(path('history.log'));
      for (const next of ['second 1234\n', 'third 12345\n', 'short\n']) {
        expect(once()).toEqual(well);
        expect(text('history.log')).toBe('');
        writeFileSync(path('history.log'), next);
      }
      expect(once()).toEqual(well);
      expect([text('history.log'), text('history.log.1'), text('history.log.2')]).toEqual([
        'short\n',
        'third 12345\n',
        'second 1234\n',
      ]);
      expect(existsSync(path('history.log.3'))).toBe(false);
      expect(statSync(path('history.log')).ino).toBe(ino);
    });

    test.skipIf(!isThere)('after a day whatever its size, and never an empty one', () => {
      writeFileSync(path('worker.log'), 'a\n');
      writeFileSync(path('matching.log'), '');
      expect(once()).toEqual(well);
      expect(text('worker.log')).toBe('a\n');
      agedDays('.worker.log.rotated', 1.5);
      expect(once()).toEqual(well);
      expect([text('worker.log'), text('worker.log.1')]).toEqual(['', 'a\n']);
      writeFileSync(path('worker.log'), 'b\n');
      expect(once()).toEqual(well);
      expect(text('worker.log')).toBe('b\n');
      expect(existsSync(path('matching.log.1'))).toBe(false);
    });

    test.skipIf(!isThere)('what is too old goes, and nothing else', () => {
      for (const name of ['frontend.log', 'frontend.log.1', 'frontend.log.2', 'frontend.logbook'])
        writeFileSync(path(name), 'a\n');
      for (const name of ['frontend.log', 'frontend.log.2', 'frontend.logbook']) agedDays(name, 20);
      agedDays('frontend.log.1', 10);
      expect(once({ MAX_AGE_DAYS: '14' })).toEqual(well);
      const left = readdirSync(logs).filter((name) => !name.startsWith('.'));
      expect(left.sort()).toEqual(['frontend.log', 'frontend.log.1', 'frontend.logbook']);
    });

    test.skipIf(!isThere)('without a whole copy nothing is truncated', () => {
      writeFileSync(path('history.log'), 'not to be lost\n');
      // A folder that cannot be removed as a file is in the copy's place.
      mkdirSync(join(logs, 'history.log.1', 'history.log'), { recursive: true });
      const { status, stderr } = once({ KEEP: '1' });
      expect([status, text('history.log')]).toEqual([0, 'not to be lost\n']);
      expect(stderr).toContain('history.log: not rotated');
    });
  },
);

describe.skipIf(!hasLogrotate)('the host’s logrotate configuration', () => {
  /** The shipped configuration, for a folder and the user of the test. */
  function configuration(): string {
    const shipped = readFileSync(join(root, 'deploy/systemd/svc.logrotate'), 'utf8');
    const file = path('logrotate.conf');
    const own = shipped.replaceAll('/var/log/svc', logs).replace(/^ *su svc adm\n/m, '');
    expect(own).not.toBe(shipped);
    writeFileSync(file, own, { mode: 0o600 });
    return file;
  }
  const logrotate = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('logrotate', ['-s', path('state'), ...args], {
      encoding: 'utf8',
    });
    return { status, said: stdout + stderr };
  };

  test('logrotate -d takes it', () => {
    writeFileSync(path('frontend.log'), 'a\n');
    const { status, said } = logrotate('-d', configuration());
    expect(status, said).toBe(0);
    expect(said).not.toMatch(/error/i);
    expect(said).toContain(`considering log ${path('frontend.log')}`);
  });

  test('copies and truncates the very file, and what is beyond maxage goes', () => {
    writeFileSync(path('frontend.log'), 'a\n');
    const { ino } = statSync(path('frontend.log'));
    const old = 'frontend.log-20260101-1767225600.gz';
    writeFileSync(path(old), '');
    agedDays(old, 31);
    const { status, said } = logrotate('-f', configuration());
    expect(status, said).toBe(0);
    expect([text('frontend.log'), statSync(path('frontend.log')).ino]).toEqual(['', ino]);
    const copies = readdirSync(logs).filter((name) => name.startsWith('frontend.log-'));
    expect(copies.map(text)).toEqual(['a\n']);
  });
});
