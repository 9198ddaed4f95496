import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { isInstalled } from '../installed.ts';
import { instructionsOf, stagesOf } from '../integration/deploy/dockerfile.ts';
import { atTestEnd } from '../test-end.ts';
import { root } from '../unit/house/imports.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { commandHere, start, startAgent } from './process.ts';

const hasLogrotate = isInstalled('logrotate');
const place = newFolder(afterAll);

/** A separate folder for a test. */
function own(name: string): string {
  const path = join(place, name);
  mkdirSync(path);
  return path;
}

const deploy = join(root, 'deploy');
const configurations = readdirSync(deploy, { recursive: true, encoding: 'utf8' }).filter((path) =>
  /(?:^|\/)agent\.yaml$|^systemd\/cluster\.yaml$/.test(path),
);

describe('each shipped agent.yaml', () => {
  test('is looked at', () => {
    expect(configurations.sort()).toEqual([
      'kubernetes/cluster-agent/agent.yaml',
      'kubernetes/components/log-volume/agent.yaml',
      'kubernetes/components/sidecar/agent.yaml',
      'kubernetes/node-agent/agent.yaml',
      'systemd/agent.yaml',
      'systemd/cluster.yaml',
    ]);
  });

  test.each(configurations)('%s: svc-agent check has nothing to say', async (path) => {
    const directory = own(path.replaceAll('/', '-'));
    const secrets = join(directory, 'secrets');
    const service = join(directory, 'service.yaml');
    const text = readFileSync(join(deploy, path), 'utf8')
      .replace('/etc/svc-agent-secrets', secrets)
      .replace(/\/etc\/svc(?:-agent)?\/service\.yaml/, service);
    const file = join(directory, 'agent.yaml');
    writeFileSync(file, text);
    mkdirSync(secrets, { mode: 0o700 });
    writeFileSync(join(secrets, 'main-password'), 'secret\n', { mode: 0o600 });
    cpSync(join(deploy, 'kubernetes/cluster-agent/service.yaml'), service);
    const env = { CREDENTIALS_DIRECTORY: secrets, STATE_DIRECTORY: join(directory, 'state') };
    const { status, stdout, stderr } = await commandHere(['check', '-c', file], env);
    expect([status, stderr], stdout).toEqual([0, '']);
    expect(stdout).toMatch(/^valid$/m);
    const said = stdout.split('\n').filter((line) => /^ {2}\S+\.yaml:\d+:\d+: /.test(line));
    // The service's logs are not on this machine.
    expect(said.filter((line) => !/logs\.paths\[0\]: matches no file yet/.test(line))).toEqual([]);
  });
});

describe('the image', () => {
  test('what the target agent copies is all that the agent needs, with the flags of its entry point', async () => {
    const app = own('image');
    const stage = stagesOf(instructionsOf(readFileSync(join(root, 'Dockerfile'), 'utf8'))).get('agent')!;
    for (const { keyword, rest } of stage) {
      const [from, to] = keyword === 'COPY' ? rest.split(' ').slice(-2) : [];
      if (!from || !to?.startsWith('/app/')) continue;
      cpSync(join(root, from.replace('/build/', '')), join(app, to), { recursive: true });
    }
    const entry = stage.find(({ keyword }) => keyword === 'ENTRYPOINT')!.rest;
    const [, ...args] = JSON.parse(entry) as string[];
    const flags = args.slice(0, -1);
    const program = join(app, args.at(-1)!);
    const call = (...words: string[]) =>
      spawnSync(process.execPath, [...flags, program, ...words], { encoding: 'utf8', cwd: app });
    expect(call('rules', '--kubernetes').stdout).toContain('kind: PrometheusRule');
    expect(JSON.parse(call('dashboards', 'overview').stdout).uid).toBe('svc-overview');

    const file = agentFile(own('image-state'), {
      more: '  frontend: {scrape: http://127.0.0.1:1/metrics, vocabulary: cadence}\n',
    });
    expect(call('check', '-c', file)).toMatchObject({ status: 0, stderr: '' });
    const agent = start(process.execPath, [...flags, program, 'run', '-c', file]);
    try {
      const address = await until(
        'the agent listens',
        () => /"listener":"admin","address":"([^"]+)"/.exec(agent.output())?.[1],
      );
      await until(
        'the health check passes',
        () => call('healthcheck', '--url', `http://${address}/health`).status === 0,
      );
    } finally {
      expect(await agent.end(), agent.output()).toBe(0);
    }
  });
});

describe('the PrometheusRules', () => {
  test('are what svc-agent rules prints', async () => {
    const packs = ['recommended', 'recording', 'slo'].flatMap((pack) => ['--pack', pack]);
    const { stdout } = await commandHere(['rules', '--kubernetes', ...packs]);
    expect(readFileSync(join(deploy, 'kubernetes/monitoring/rules.yaml'), 'utf8')).toBe(stdout);
  });
});

const secondNow = () => Math.floor(Date.now() / 1000);

/** The rotations in the deployment files. */
const rotations = [
  {
    name: 'the rotation beside a role',
    isThere: true,
    rotate(logs: string) {
      const script = join(deploy, 'kubernetes/components/log-volume/rotate.sh');
      return spawnSync('sh', [script, '--once'], { env: { ...process.env, LOG_DIR: logs, MAX_BYTES: '1' } });
    },
  },
  {
    name: 'logrotate with the host’s configuration',
    isThere: hasLogrotate,
    rotate(logs: string) {
      const configuration = join(logs, '..', 'logrotate.conf');
      const shipped = readFileSync(join(deploy, 'systemd/svc.logrotate'), 'utf8');
      const text = shipped.replaceAll('/var/log/svc', logs).replace(/^ *su svc adm\n/m, '');
      writeFileSync(configuration, text, { mode: 0o600 });
      return spawnSync('logrotate', ['-f', '-s', join(logs, '..', 'logrotate.state'), configuration]);
    },
  },
];

describe.each(rotations)('$name', ({ isThere, rotate }) => {
  test.skipIf(!isThere)(
    'costs no line and counts none twice, for a service that goes on writing',
    async () => {
      const directory = own(`rotated-${rotations.findIndex((row) => row.rotate === rotate)}`);
      const logs = join(directory, 'logs');
      mkdirSync(logs, { mode: 0o755 });
      const log = join(logs, 'history.log');
      writeFileSync(log, '');
      const { ino } = statSync(log);
      const agent = await startAgent(agentFile(directory, { logs: `${log}*` }));
      atTestEnd(() => agent.end());
      const counted = async () => {
        const page = await (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
        const lines = page.matchAll(/^svc_log_entries_total\{[^}]*\} (\d+)$/gm);
        return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
      };
      let written = 0;
      const write = (lines: number) => {
        for (let line = 0; line < lines; line++)
          appendFileSync(log, `{"level":"info","msg":"line ${written++}","logger":"history"}\n`);
      };
      for (let turn = 0; turn < 4; turn++) {
        write(200 + turn);
        await until(`${written} lines are counted`, async () => (await counted()) === written);
        // These lines are unread when the file is truncated, and are in the copy.
        write(50);
        const { status, stderr } = rotate(logs);
        expect(status, String(stderr)).toBe(0);
        // logrotate names a copy after the second of its creation, and refuses to write a second copy with that name. The second
        // is read after the rotation has ended, because it may have changed meanwhile.
        const second = secondNow();
        await until('the next second has come', () => secondNow() > second);
      }
      write(10);
      await until(`all ${written} lines are counted`, async () => (await counted()) === written);
      expect([statSync(log).ino, readdirSync(logs).length > 1]).toEqual([ino, true]);
    },
  );
});
