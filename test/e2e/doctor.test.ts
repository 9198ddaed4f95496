import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { freePort } from '../ports.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { serving, servingBare } from '../serving.ts';
import { mainFile, start, startAgent } from './process.ts';

interface Diagnosis {
  check: string;
  result: string;
  msg: string;
  fix?: string;
}

describe('doctor, on the built program', () => {
  const place = newFolder(afterAll);
  const file = join(place, 'agent.yaml');

  const examine = async (configuration: string, uid?: number) => {
    writeFileSync(file, `stateDirectory: ${join(place, 'state')}\n${configuration}`);
    const args = [mainFile, 'doctor', '-c', file, '--json'];
    // Root may read everything.
    const running =
      uid === undefined
        ? start(process.execPath, args)
        : start('setpriv', [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', process.execPath, ...args]);
    const status = await running.ended;
    const diagnoses = JSON.parse(running.output()) as Diagnosis[];
    return { status, of: (check: string) => diagnoses.filter((diagnosis) => diagnosis.check === check) };
  };

  test('a host where all is well', async () => {
    const log = join(place, 'history.log');
    writeFileSync(log, '{"level":"info"}\n');
    const port = await freePort();
    const { status, of } = await examine(
      `admin: {listenAddress: '127.0.0.1:${port}'}\nservices: {history: {logs: {paths: ['${place}/hist*.log']}}}\n`,
    );
    expect(status).toBe(0);
    expect(of('state directory')).toMatchObject([{ result: 'ok' }]);
    expect(of('logs of history')).toMatchObject([{ result: 'ok', msg: expect.stringContaining('1 file') }]);
    expect(of('port of admin')).toMatchObject([{ result: 'ok', msg: expect.stringContaining('is free') }]);
  });

  test('what to do names the key of each finding of the configuration', async () => {
    const { of } = await examine('admin: ~\nservices: {frontend: {}, worker: {}}\n');
    expect(of('configuration').map(({ fix }) => fix)).toEqual([
      expect.stringMatching(/^metrics: /),
      'services.frontend: set logs, health, scrape or statsd',
      'services.worker: set logs, health, scrape or statsd',
    ]);
  });

  test('a port that another program has, and one that a running agent has', async () => {
    const port = await servingBare();
    const taken = await examine(
      `admin: {listenAddress: '127.0.0.1:${port}'}\nservices: {history: {logs: {paths: ['${place}/*.log']}}}\n`,
    );
    expect(taken.status).toBe(1);
    expect(taken.of('port of admin')).toMatchObject([
      { result: 'fault', fix: expect.stringContaining(`:${port}`) },
    ]);

    const own = await freePort();
    writeFileSync(
      file,
      `stateDirectory: ${join(place, 'state')}\nadmin: {listenAddress: '127.0.0.1:${own}'}\nservices: {history: {logs: {paths: ['${place}/*.log']}}}\n`,
    );
    const agent = await startAgent(file);
    const running = await examine(
      `admin: {listenAddress: '127.0.0.1:${own}'}\nservices: {history: {logs: {paths: ['${place}/*.log']}}}\n`,
    );
    expect(running.of('port of admin')).toMatchObject([
      { result: 'ok', msg: expect.stringContaining('running svc-agent') },
    ]);
    await agent.end();
  });

  test('a log that matches nothing, one that is a directory, a role that is down', async () => {
    mkdirSync(join(place, 'logs'), { recursive: true });
    const down = await freePort();
    const { status, of } = await examine(`admin: ~
services:
  history: {logs: {paths: ['${place}/nothing-*.log', '${place}/logs']}, health: 'tcp://127.0.0.1:${down}'}
`);
    expect(status).toBe(1);
    expect(of('logs of history')).toMatchObject([
      { result: 'advice', msg: expect.stringContaining('matches no file yet') },
      { result: 'fault', fix: expect.stringContaining('/logs/*.log') },
    ]);
    expect(of('health/history')).toMatchObject([
      { result: 'fault', msg: expect.stringContaining('refused') },
    ]);
  });

  test('a pattern over more entries than a check reads is advised against', async () => {
    const wide = join(place, 'wide');
    mkdirSync(wide);
    for (let n = 0; n <= 40_000; n++) writeFileSync(join(wide, String(n)), '');
    const { of } = await examine(`admin: ~\nservices: {history: {logs: {paths: ['${wide}/**']}}}\n`);
    expect(of('logs of history')).toMatchObject([
      {
        result: 'advice',
        msg: expect.stringContaining('its directories have more than 40000 entries'),
        fix: 'name the directory that the logs are in',
      },
    ]);
  });

  test('metrics that are a web page, a store that refuses, a host that has no address: each with its key', async () => {
    const port = await serving((_, response) =>
      response.setHeader('content-type', 'text/html').end('<html>hello</html>'),
    );
    const down = await freePort();
    const { status, of } = await examine(`admin: ~
services:
  history: {scrape: 'http://127.0.0.1:${port}/', health: 'tcp://nosuch.invalid:1'}
stores: [{name: main, kind: postgres, address: '127.0.0.1:${down}', databases: {persistence: svc}}]
`);
    expect(status).toBe(1);
    expect(of('metrics of history')).toMatchObject([
      {
        result: 'fault',
        msg: expect.stringContaining('text/html'),
        fix: expect.stringContaining('services.history.scrape'),
      },
    ]);
    expect(of('health/history')).toMatchObject([{ fix: expect.stringContaining('services.history.health') }]);
    expect(of('store/main/persistence')).toMatchObject([
      { fix: expect.stringContaining('correct the address in the entry main of stores') },
    ]);
  });

  test('one log for several roles: told once, with the roles; a secret that is not set: set it', async () => {
    const down = await freePort();
    const { of } = await examine(`admin: ~
services:
  frontend: {logs: {paths: ['${place}/nothing-*.log']}}
  history: {logs: {paths: ['${place}/nothing-*.log']}}
  worker: {logs: {paths: ['${place}/nothing-*.log'], exclude: ['*.old']}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:${down}', user: svc, password: {env: NOT_SET}, databases: {persistence: svc}}]
`);
    expect(of('logs of frontend, history')).toMatchObject([{ result: 'advice' }]);
    expect(of('logs of worker')).toMatchObject([{ result: 'advice' }]);
    expect(of('store/main/persistence')).toMatchObject([
      {
        msg: 'credentials: environment variable NOT_SET is not set',
        fix: expect.stringMatching(/^the agent reads the secret from there: set it/),
      },
    ]);
  });

  test.skipIf(!hasPostgres)(
    'a store whose user may see little: what cannot be checked, why, and what to do',
    async () => {
      const server = await startPostgres();
      try {
        await server.query('CREATE ROLE stranger LOGIN; CREATE TABLE schema_version (version_partition int)');
        const { of } = await examine(`admin: ~
stores: [{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: stranger, databases: {persistence: postgres}}]
`);
        const [own, unchecked] = of('store/main/persistence');
        expect(own).toMatchObject({ result: 'ok' });
        expect(unchecked).toMatchObject({
          result: 'advice',
          msg: expect.stringMatching(/^cannot be checked: .*free_space \(the directories are hidden\)/),
          fix: expect.stringMatching(
            /--print-grants .*; for free_space run an agent on the host of the store/,
          ),
        });
      } finally {
        await server.stop();
      }
    },
  );

  test('a state directory below a file, and a log that is not there yet, are told once', async () => {
    const blocker = join(place, 'blocker');
    writeFileSync(blocker, '');
    writeFileSync(
      file,
      `stateDirectory: ${blocker}/state\nadmin: ~\nmetrics: {pullmetrics: {listenAddress: '127.0.0.1:0'}}\nservices: {history: {logs: {paths: ['${place}/nothing-*.log']}}}\n`,
    );
    const running = start(process.execPath, [mainFile, 'doctor', '-c', file, '--json']);
    expect(await running.ended).toBe(1);
    const told = (JSON.parse(running.output()) as Diagnosis[]).filter(({ result }) => result !== 'ok');
    expect(told.map(({ check, result }) => [check, result])).toEqual([
      ['state directory', 'fault'],
      ['logs of history', 'advice'],
    ]);
    expect(told.every(({ fix }) => fix !== undefined)).toBe(true);
  });

  test.skipIf(process.getuid?.() !== 0)('a log that the agent’s user may not read', async () => {
    const log = join(place, 'secret.log');
    writeFileSync(log, '');
    chmodSync(log, 0o600);
    chmodSync(place, 0o755);
    const { status, of } = await examine(
      `admin: ~\nservices: {history: {logs: {paths: ['${log}']}}}\n`,
      65534,
    );
    expect(status).toBe(1);
    expect(of('logs of history')).toMatchObject([
      { result: 'fault', fix: expect.stringContaining('add the user to the group of the file') },
    ]);
  });
});
