import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { command, configurationOptions } from '../../../src/agent/cli/arguments.ts';
import { check } from '../../../src/agent/cli/check.ts';
import { init } from '../../../src/agent/cli/init.ts';
import { newFolder } from '../../folder.ts';
import { fakeIo } from './fake-io.ts';

const fixtures = fileURLToPath(new URL('../../fixtures/config', import.meta.url));
const folder = newFolder(afterAll);

const write = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return name;
};

describe('check', () => {
  test('says what would run, and that it is well', async () => {
    const file = write(
      'good.yaml',
      'metrics: {pullmetrics: {listenAddress: "127.0.0.1:9464"}}\nservices: {frontend: {logs: {paths: [/a]}}}\n',
    );
    const io = fakeIo(folder);
    expect(await check(['-c', file], io)).toBe(0);
    expect(io.err()).toBe('');
    expect(io.out()).toMatch(/reporter +pullmetrics on 127\.0\.0\.1:9464/);
    expect(io.out()).toMatch(/frontend +yes +\/a/);
    expect(io.out()).toMatch(/^valid\n$/m);
  });

  test('invalid: 2, and the faults on stderr', async () => {
    const io = fakeIo(join(fixtures, 'bad'));
    expect(await check(['-c', 'level-upper-case.yaml'], io)).toBe(2);
    expect(io.err()).toBe(
      'level-upper-case.yaml:1:14: log.level: unknown level, got "INFO"; use debug, info, warn, error or fatal (lower case)\n',
    );
  });

  test('faults in the service’s own files: 1, without an agent.yaml too', async () => {
    mkdirSync(join(folder, 'empty'), { recursive: true });
    const io = fakeIo(join(folder, 'empty'));
    expect(await check(['--service-config', join(fixtures, 'service/vendor.yaml'), '--json'], io)).toBe(1);
    const report = JSON.parse(io.out());
    expect(report.ok).toBe(false);
    expect(report.faults).toEqual([]);
    expect(report.findings).toHaveLength(5);
    expect(report.findings[0].place).toMatchObject({ line: 2, column: 28 });
  });

  test('a secret that is not there: 1', async () => {
    const file = write(
      'secret.yaml',
      'stores: [{name: a, kind: mysql, address: "10.0.0.1:3306", password: {env: NOT_THERE}}]\n',
    );
    expect(await check(['-c', file], fakeIo(folder))).toBe(1);
    expect(await check(['-c', file], fakeIo(folder, { NOT_THERE: 'x' }))).toBe(0);
  });

  test('shows no secret', async () => {
    const file = write(
      'literal.yaml',
      'stores: [{name: a, kind: mysql, address: "10.0.0.1:3306", password: hunter2}]\n',
    );
    for (const more of [[], ['--json']]) {
      const io = fakeIo(folder);
      await check(['-c', file, ...more], io);
      expect(io.out() + io.err()).not.toContain('hunter2');
    }
  });
});

describe('init', () => {
  test('writes what check passes', async () => {
    const io = fakeIo(folder);
    expect(await init([], io)).toBe(0);
    expect(await check(['-c', write('init.yaml', io.out())], fakeIo(folder))).toBe(0);
  });

  test('with the service’s own files: its roles, out of the way of its ports', async () => {
    write(
      'service.yaml',
      'log: {level: info, outputFile: service.log}\nservices:\n  frontend: {metrics: {pullmetrics: {timerType: histogram, listenAddress: "0.0.0.0:9464"}}}\n  "odd: role": {metrics: {pullmetrics: {timerType: histogram, listenAddress: ":9466"}}}\n',
    );
    const io = fakeIo(folder);
    expect(await init(['--service-config', 'service.yaml'], io)).toBe(0);
    const checked = fakeIo(folder);
    expect(await check(['-c', write('from-service.yaml', io.out()), '--json'], checked)).toBe(0);
    const report = JSON.parse(checked.out());
    expect(report.roles).toEqual(['frontend', 'odd: role']);
    expect(report.discovered).toContainEqual(
      expect.objectContaining({ value: 'http://127.0.0.1:9464/metrics' }),
    );
    expect(io.out()).not.toContain('listenAddress: 0.0.0.0:9464');
  });

  test('never overwrites', async () => {
    write('mine.yaml', 'instance: mine\n');
    await expect(init(['mine.yaml'], fakeIo(folder))).rejects.toMatchObject({ code: 'usage' });
    expect(readFileSync(join(folder, 'mine.yaml'), 'utf8')).toBe('instance: mine\n');
    expect(await init(['new.yaml'], fakeIo(folder))).toBe(0);
    expect(await check(['-c', 'new.yaml'], fakeIo(folder))).toBe(0);
  });
});

test('one --service-config takes several files, as several of them do', async () => {
  const folder = newFolder();
  const [base, production] = ['base.yaml', 'production.yaml'].map((name) => join(folder, name));
  for (const path of [base!, production!]) writeFileSync(path, '');
  const named = async (args: string[], most = 0) => {
    let got: unknown;
    const form = { name: 'check', usage: '', options: configurationOptions, most } as const;
    await command(form, async (values, _, positionals) => {
      got = [values['service-config'], positionals];
      return 0;
    })(args, fakeIo(folder));
    return got;
  };
  expect(await named(['--service-config', base!, production!, '--role', 'frontend'])).toEqual([
    [base, production],
    [],
  ]);
  expect(await named(['--service-config', base!, '--service-config', production!, base!])).toEqual([
    [base, production, base],
    [],
  ]);
  // A file that does not exist remains a separate argument.
  expect(await named(['--service-config', base!, join(folder, 'agent.yaml')], 1)).toEqual([
    [base],
    [join(folder, 'agent.yaml')],
  ]);
  await expect(named(['--service-config', base!, join(folder, 'nowhere.yaml')])).rejects.toThrow(
    'surplus argument',
  );
});
