import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type CommandName, commands } from '../../src/agent/cli/arguments.ts';
import { newFolder } from '../folder.ts';
import { commandHere as command } from './process.ts';

const place = newFolder(afterAll);
let directories = 0;
const own = () => {
  const path = join(place, String(++directories));
  mkdirSync(path);
  return path;
};
function written(text: string): string {
  const file = join(own(), 'agent.yaml');
  writeFileSync(file, text);
  return file;
}

/** How many arguments a command accepts besides its options; a command that is not listed accepts none. */
const most: Readonly<Record<string, number>> = {
  ...{ init: 1, recover: 1, completion: 1, backup: 1 },
  ...{ run: 1, check: 1, doctor: 1 },
};
const several = ['probe', 'dashboards', 'test'];

describe('surplus arguments end with 2 and are named:', () => {
  test.each(commands.map(({ name }) => name).filter((name) => !several.includes(name)))(
    '%s',
    async (name) => {
      const first = {
        init: join(own(), 'new.yaml'),
        recover: 'failback',
        completion: 'bash',
        backup: 'plan',
        run: 'agent.yaml',
        check: 'agent.yaml',
        doctor: 'agent.yaml',
      }[name as 'init'];
      const surplus = first === undefined ? ['surplus'] : [first, 'surplus'];
      expect(surplus.length).toBe((most[name] ?? 0) + 1);
      const { status, stdout, stderr } = await command([name, ...surplus]);
      expect([status, stdout]).toEqual([2, '']);
      expect(stderr).toContain('surplus');
      expect(stderr).toContain(`svc-agent ${name} --help`);
    },
  );

  test.each([
    ['--help', 'check'],
    ['--version', 'check'],
    ['version', 'check'],
    ['help', 'check', 'run'],
  ])('%s %s', async (name, ...words) => {
    const { status, stdout, stderr } = await command([name, ...words]);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`svc-agent ${name}: takes no such arguments, got "${words.join(' ')}"`);
  });

  test.each([
    ['probe', 'nosuch', 'unknown probe, got "nosuch"'],
    ['dashboards', 'overvew', 'did you mean overview?'],
  ])('%s %s', async (name, word, message) => {
    const file = written(
      'services: {frontend: {health: "http://127.0.0.1:1/"}}\nmetrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}\n',
    );
    const { status, stdout, stderr } = await command([name, word, ...(name === 'probe' ? ['-c', file] : [])]);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});

describe('an unknown role ends with 2 and names the nearest known one', () => {
  const services =
    'services: {frontend: {}, worker: {}}\nmetrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}\n';
  const cases: { way: string; args: string[]; env: Record<string, string>; text: string }[] = [
    { way: '--role', args: ['--role', 'wroker'], env: {}, text: services },
    { way: 'SVC_AGENT_ROLES', args: [], env: { SVC_AGENT_ROLES: 'frontend,wroker' }, text: services },
    { way: 'roles:', args: [], env: {}, text: `roles: [wroker]\n${services}` },
  ];
  test.each(cases)('in $way', async ({ args, env, text }) => {
    const file = written(text);
    for (const name of ['run', 'check', 'probe', 'doctor']) {
      const { status, stdout, stderr } = await command([name, '-c', file, ...args], env);
      expect(status, name).toBe(2);
      // The output of `check` is its report of faults.
      expect(stdout + stderr, name).toContain('unknown role, got "wroker"; did you mean worker?');
    }
  });

  test('of init', async () => {
    const { status, stderr } = await command(['init', '--role', 'wroker']);
    expect(status).toBe(2);
    expect(stderr).toContain('did you mean worker?');
  });
});

const samples = join(own(), 'samples.test.yaml');
writeFileSync(samples, 'tests: [{name: nothing, role: frontend, lines: "{}", expect: {x: ~}}]\n');
/** The arguments with which a command reads a configuration. */
const reading: Readonly<Partial<Record<CommandName, readonly string[]>>> = {
  ...{
    run: [],
    check: [],
    probe: [],
    doctor: [],
    status: [],
    incidents: [],
    healthcheck: [],
    bundle: [],
    tap: [],
  },
  ...{ maintenance: ['--for', '1m', '--reason', 'disks'], backup: ['plan'] },
  ...{ recover: ['failback', '--domain', 'orders', '--to', 'dc2', '--plan'], test: [samples] },
};
const readNone = ['rules', 'dashboards', 'init', 'demo', 'schema', 'completion'];

test('every command either reads a configuration or reads none', () => {
  expect([...Object.keys(reading), ...readNone].sort()).toEqual(commands.map(({ name }) => name).sort());
});

test.each(Object.entries(reading))(
  '%s ends with 2 for an invalid agent.yaml, and names its faults',
  async (name, args) => {
    const file = written('log: {level: INFO}\nmetrcs: {}\n');
    const { status, stdout, stderr } = await command([name, ...args, '-c', file]);
    expect(status).toBe(2);
    // The output of `check` and `bundle` is a report that contains the faults.
    const report = stdout + stderr;
    for (const text of [file, 'unknown level', 'metrcs']) expect(report).toContain(text);
  },
);

test.each(['', '\n\n', '# nothing\n', '---\n', '{}\n', '~\n'])(
  'an empty configuration ends with 2: %j',
  async (text) => {
    const file = written(text);
    for (const name of ['run', 'check', 'probe', 'doctor', 'status', 'healthcheck']) {
      const { status, stdout, stderr } = await command([name, '-c', file]);
      expect([name, status]).toEqual([name, 2]);
      expect(stdout + stderr, name).toContain(
        `${file}:1:1: empty; write a configuration with svc-agent init`,
      );
    }
  },
);

describe('a writer that fails leaves no file behind:', () => {
  const broken = written('services: [');
  test.each([
    ['init', (file: string) => ['init', file, '--service-config', broken]],
    ['init --out', (file: string) => ['init', '--out', file, '--service-config', broken]],
    ['init with an unknown role', (file: string) => ['init', file, '--role', 'nosuch']],
    ['rules', (file: string) => ['rules', '--out', file, '--threshold', 'NoSuch=1']],
    ['dashboards', (file: string) => ['dashboards', '--out', file, '--job', 'nosuch=1']],
  ])('%s', async (_, args) => {
    const directory = own();
    const file = join(directory, 'new');
    const { status, stderr } = await command(args(file));
    expect(status, stderr).toBe(2);
    expect(readdirSync(directory)).toEqual([]);
  });

  test('init overwrites nothing', async () => {
    const file = written('roles: [frontend]\n');
    const { status, stderr } = await command(['init', file]);
    expect([status, stderr.includes(file)]).toEqual([2, true]);
    expect(existsSync(file)).toBe(true);
  });
});

describe('help', () => {
  test.each(commands.map(({ name }) => name))(
    'help %s is what %s --help prints, with two examples',
    async (name) => {
      const asked = await command(['help', name]);
      expect(asked).toEqual(await command([name, '--help']));
      expect(asked.status).toBe(0);
      expect(asked.stdout.match(new RegExp(`^  svc-agent ${name}\\b`, 'gm'))?.length).toBeGreaterThanOrEqual(
        2,
      );
    },
  );

  const examples = commands.flatMap(({ examples: lines }): string[] => [...lines]);
  test.each(examples)('the options of the example `%s` exist', async (example) => {
    const [words = ''] = example.split(' -- ');
    expect((await command([...words.split(' '), '--help'])).stderr).toBe('');
  });

  test('-v is --version', async () => {
    expect(await command(['-v'])).toEqual(await command(['--version']));
  });
});

test.each([
  [['status', '--url'], 'svc-agent status: option --url needs a value; see svc-agent status --help\n'],
  [['status', '--url', '-c'], 'svc-agent status: option --url needs a value; see svc-agent status --help\n'],
  [['check', '--role', ''], 'svc-agent check: option --role is empty; see svc-agent check --help\n'],
  [['run', '--config='], 'svc-agent run: option --config is empty; see svc-agent run --help\n'],
  [['init', ''], 'svc-agent init: an empty argument, got ""; see svc-agent init --help\n'],
  [
    ['-c', 'agent.yaml'],
    'svc-agent: an option before the command, got "-c"; write the command first, such as svc-agent check -c FILE\n',
  ],
  [
    ['status', '--ca', '/dev/null', '--insecure', '--url', 'https://127.0.0.1:1'],
    'svc-agent: --ca: with --insecure; use one of them\n',
  ],
  [['incidents', '--insecure'], 'svc-agent: --insecure: without --url; add --url, or leave it out\n'],
  [
    ['status', '--ca', '/etc/hosts', '--url', 'https://127.0.0.1:1'],
    'svc-agent: --ca: no certificate in it, got "/etc/hosts"; name a PEM file with the certificates of the authorities\n',
  ],
  [
    ['status', '--ca', '/dev/null', '--url', 'https://127.0.0.1:1'],
    'svc-agent: --ca: cannot be read (not a regular file), got "/dev/null"; name a PEM file with the certificates of the authorities\n',
  ],
  [
    ['healthcheck', '--ca', '/nowhere/ca.pem', '--url', 'https://127.0.0.1:1'],
    'svc-agent: --ca: cannot be read (ENOENT), got "/nowhere/ca.pem"; name a PEM file with the certificates of the authorities\n',
  ],
  [
    ['maintenance', '--for', '1m', '--reason', 'x', '--token-file', '/nowhere/token'],
    'svc-agent: --token-file: file /nowhere/token cannot be read (ENOENT); name a file that the agent can read\n',
  ],
  [
    ['dashboards', '--list', '--out', '/nowhere'],
    'svc-agent dashboards: --list with --out; use one of them\n',
  ],
  [
    ['backup', 'run', '--job', 'nightly', 'pg_dump', '-Fc'],
    'svc-agent backup: no command; put it behind --, such as backup run --job NAME -- pg_dump …\n',
  ],
  [
    ['backup', 'run', '--job', 'nightly', '--', ''],
    'svc-agent backup: no command; put it behind --, such as backup run --job NAME -- pg_dump …\n',
  ],
  [['check', '--json=yes'], 'svc-agent check: option --json takes no value; see svc-agent check --help\n'],
  [
    ['check', '--confg', 'x'],
    'svc-agent check: unknown option, got "--confg"; did you mean --config? see svc-agent check --help\n',
  ],
  [
    ['check', 'one.yaml', '-c', 'two.yaml'],
    'svc-agent: --config: two configuration files, got "two.yaml and one.yaml"; name one\n',
  ],
])('%j says what is wrong, and names the program once', async (args, message) => {
  expect(await command(args)).toEqual({ status: 2, stdout: '', stderr: message });
});

test('check takes the file as an argument', async () => {
  const file = written('services: {frontend: {health: "http://127.0.0.1:1/"}}\nadmin: ~\n');
  expect(await command(['check', file])).toEqual(await command(['check', '-c', file]));
});

test('without a configuration, status asks the usual address of the admin listener', async () => {
  // Another agent may listen there, and answer.
  const { stdout, stderr } = await command(['status'], {}, own());
  expect(stderr).toMatch(/^$|http:\/\/127\.0\.0\.1:9465\/api\/status: no answer/);
  expect(stdout + stderr).not.toBe('');
});
