import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newFolder } from '../../folder.ts';
import { isInstalled } from '../../installed.ts';
import { root } from '../../unit/house/imports.ts';

const systemd = join(root, 'deploy/systemd');
/** The exposure in tenths: what remains is the network, the host's logs and V8's compiler. */
const mostExposure = 16;

let folder: string;
let unit: string;
beforeAll(() => {
  folder = newFolder(afterAll);
  unit = join(folder, 'svc-agent.service');
  // Node may be at another place on the machine that runs the tests.
  const text = readFileSync(join(systemd, 'svc-agent.service'), 'utf8');
  writeFileSync(unit, text.replace('/usr/bin/node', process.execPath));
  cpSync(join(systemd, 'svc-agent.service.d'), `${unit}.d`, { recursive: true });
});

describe.skipIf(!isInstalled('systemd-analyze'))('the systemd unit', () => {
  const analyze = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    return { status, text: stdout + stderr };
  };

  test('systemd takes it, with the drop-in, and has nothing to say', () => {
    expect(analyze('verify', unit)).toEqual({ status: 0, text: '' });
  });

  test('a misspelt setting would be told', () => {
    const bad = join(folder, 'bad.service');
    writeFileSync(bad, readFileSync(unit, 'utf8').replace('NoNewPrivileges', 'NoNewPrivilege'));
    expect(analyze('verify', bad).text).toMatch(/Unknown key.* 'NoNewPrivilege'/);
  });

  test('is as closed as it can be', () => {
    const args = ['security', '--offline=true', `--threshold=${mostExposure}`, '--no-pager'];
    const { status, text } = analyze(...args, unit);
    expect(status, text).toBe(0);
  });

  test('the timer’s drop-in is taken', () => {
    const timer = join(folder, 'logrotate.timer');
    writeFileSync(timer, '[Timer]\nOnCalendar=daily\nUnit=svc-agent.service\n');
    mkdirSync(`${timer}.d`);
    copyFileSync(join(systemd, 'logrotate.timer.d/hourly.conf'), join(`${timer}.d`, 'hourly.conf'));
    expect(analyze('verify', timer, unit)).toEqual({ status: 0, text: '' });
  });
});

describe.skipIf(!isInstalled('systemd-tmpfiles') || process.getuid?.() !== 0)(
  'the folder of the logs',
  () => {
    test('the service’s user writes, group adm reads', () => {
      const etc = join(folder, 'etc');
      mkdirSync(etc);
      writeFileSync(join(etc, 'passwd'), 'svc:x:777:777::/:/bin/false\n');
      writeFileSync(join(etc, 'group'), 'adm:x:4:\n');
      const args = ['--create', `--root=${folder}`, join(systemd, 'svc.tmpfiles.conf')];
      const { status, stderr } = spawnSync('systemd-tmpfiles', args, { encoding: 'utf8' });
      expect(status, stderr).toBe(0);
      const { mode, uid, gid } = statSync(join(folder, 'var/log/svc'));
      expect([mode & 0o7777, uid, gid]).toEqual([0o2750, 777, 4]);
    });
  },
);
