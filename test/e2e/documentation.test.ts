import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { configurationSchema } from '../../src/agent/config/blocks.ts';
import { newFolder } from '../folder.ts';
import { isInstalled } from '../installed.ts';
import { hasPromtool, promtoolOver } from '../integration/rules/promtool.ts';
import { freePort } from '../ports.ts';
import { commandHere, mainFile, type RunningAgent, startAgent } from './process.ts';

// Every command and every configuration in README and docs is run or checked as it is printed.

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'deploy/README.md', 'examples/README.md', 'vocabularies/README.md'],
  ...['dashboards/README.md'],
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
].sort();
const textOf = (page: string): string => readFileSync(join(root, page), 'utf8');

interface Block {
  page: string;
  line: number;
  language: string;
  text: string;
}

const blocks: readonly Block[] = pages.flatMap((page) =>
  [...textOf(page).matchAll(/^( *)```(\w*)[^\n]*\n([\s\S]*?)^ *```/gm)].map(
    ([, indent = '', language = '', text = ''], at) => ({
      page,
      line: at,
      language,
      text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }),
  ),
);
const named = (language: string) =>
  blocks
    .filter((block) => block.language === language)
    .map((block) => [`${block.page}, block ${block.line + 1}`, block] as const);

test('a block has a language that this test knows', () => {
  const known = new Set(['sh', 'yaml', 'ts', 'mermaid', 'text', 'promql', 'sql']);
  const others = blocks.filter(({ language }) => !known.has(language));
  expect(others.map(({ page, text }) => `${page}: ${text}`)).toEqual([]);
});

test('generated pages are what the program says', () => {
  const script = join(root, 'scripts/generate.mjs');
  const { status, stdout } = spawnSync(process.execPath, [script, '--check'], {
    encoding: 'utf8',
    cwd: root,
  });
  expect([status, stdout]).toEqual([0, '']);
});

/** The anchors of headings, as GitHub creates them. */
const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );

test.each(pages)('links of %s lead somewhere', (page) => {
  const links = [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  const broken = links.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? join(root, page) : resolve(root, dirname(page), path);
    if (!existsSync(file)) return true;
    return anchor !== undefined && !anchorsOf(readFileSync(file, 'utf8')).has(anchor);
  });
  expect(broken, broken.join('\n')).toEqual([]);
});

const place = newFolder(afterAll);
/** The files that the commands find below `/etc` and `/var`; here they are below a folder of the test. */
const files: Readonly<Record<string, string>> = {
  '/etc/svc/base.yaml': 'log: {level: info, encoding: json}\n',
  '/etc/svc/production.yaml': `services:
  frontend: {metrics: {pullmetrics: {listenAddress: 0.0.0.0:8000}}}
  history: {metrics: {pullmetrics: {listenAddress: 0.0.0.0:8001}}}
`,
};
const configuration = (port: number) => `stateDirectory: ${place}/state
metrics: {pullmetrics: {listenAddress: '127.0.0.1:0'}}
admin: {listenAddress: '127.0.0.1:${port}', events: {token: a-token}}
services: {frontend: {}, history: {}}
stores:
  - {name: main, kind: postgres, address: '127.0.0.1:1', databases: {persistence: svc}}
backups:
  - {name: main-full, store: main, type: full, source: {files: {directory: '${place}', pattern: none}}}
domains: {watch: [orders], describe: {command: ['false', '{domain}'], interval: 7d}}
clusterGroupMetadata:
  failoverVersionIncrement: 10
  primaryClusterName: dc1
  currentClusterName: dc1
  clusterGroup:
    dc1: {initialFailoverVersion: 1, rpcAddress: '127.0.0.1:1'}
    dc2: {initialFailoverVersion: 2, rpcAddress: '127.0.0.1:1'}
`;
const here = (text: string): string =>
  text
    .replaceAll('examples/agent.yaml', join(root, 'examples/agent.yaml'))
    .replaceAll(/(^|[ '[])\/(?=(?:etc|var|mnt)\/)/g, (_, before: string) => `${before}${place}/`);

let agent: RunningAgent;
beforeAll(async () => {
  for (const directory of ['etc/svc', 'etc/svc-agent', 'etc/prometheus', 'var/lib/grafana'])
    mkdirSync(join(place, directory), { recursive: true });
  for (const [path, text] of Object.entries(files)) writeFileSync(place + path, text);
  const text = configuration(await freePort());
  writeFileSync(join(place, 'agent.yaml'), text);
  writeFileSync(join(place, 'etc/svc-agent/agent.yaml'), text);
  agent = await startAgent(join(place, 'agent.yaml'));
});
afterAll(() => agent?.end());

interface Outcome {
  status: number | null;
  output: string;
}

const env = { SVC_AGENT_DB_PASSWORD: 'x' };
/** Outcomes by the command line: pages repeat command lines, and each runs once. */
const outcomes = new Map<string, Promise<Outcome>>();

/**
 * Runs a command line of `svc-agent` in the folder; statuses 2 and 127 mean that the line is wrong. A line that needs a shell
 * runs in one, with the built program.
 */
function runLine(line: string): Promise<Outcome> {
  const words = line.split(/\s+/);
  const run = async () => {
    if (words[0] !== 'svc-agent' || /['"`$&|;<>(){}*?\\=~]/.test(line)) return runInShell(line);
    const { status, stdout, stderr } = await commandHere(words.slice(1), env, place);
    return { status, output: stdout + stderr };
  };
  const outcome = outcomes.get(line) ?? run();
  outcomes.set(line, outcome);
  return outcome;
}

function runInShell(line: string): Outcome {
  const script = `svc-agent() { ${process.execPath} ${mainFile} "$@"; }\n${line}`;
  // An earlier block may have written the file that this one writes.
  const { status, stdout, stderr } = spawnSync('bash', ['-c', script], {
    cwd: place,
    encoding: 'utf8',
    timeout: 240_000,
    env: { ...process.env, ...env },
    input: '',
  });
  return { status, output: stdout + stderr };
}

const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
const npmCommands = new Set(['start', 'test', 'pack', 'install', 'ci']);

/** What is wrong with a line of a shell block; undefined if it is right. */
async function faultOf(written: string): Promise<string | undefined> {
  const line = written
    .replace(/\s+#.*$/, '')
    .replace(/^node dist\/main\.js/, 'svc-agent')
    .trim();
  if (line === '' || line.startsWith('#')) return undefined;
  const [program = '', ...rest] = line.replace(/^(?:[A-Z_]+=(?:'[^']*'|\S+) )+/, '').split(/\s+/);
  if (program === 'svc-agent') return agentFault(line, rest);
  if (program === 'npm') {
    const script = rest[0] === 'run' ? rest[1]! : rest[0]!;
    return script in scripts || npmCommands.has(script) ? undefined : `no script ${script}`;
  }
  if (others.has(program)) return missingPath(rest);
  return `no rule for ${program}`;
}

/** Programs that cannot run here, or that other tests run: the project's files that they name must exist. */
const others = new Set([
  ...[
    'docker',
    'kubectl',
    'systemctl',
    'install',
    'node',
    'curl',
    'git',
    'cd',
    'promtool',
    'npx',
    'amtool',
    'helm',
    'cat',
  ],
]);
const missingPath = (words: readonly string[]): string | undefined =>
  words.find(
    (word) => /^(?:deploy|examples|test|rules|dashboards)\//.test(word) && !existsSync(join(root, word)),
  );

async function agentFault(
  line: string,
  [name = '', ...rest]: readonly string[],
): Promise<string | undefined> {
  // `run` does not end, so `check` reads the same configuration instead.
  const asked = name === 'run' ? line.replace('svc-agent run', 'svc-agent check') : line;
  const isNew = /(?:--out|>) (\S+agent\.yaml|agent\.yaml)/.exec(line);
  const target = isNew ? here(` ${isNew[1]}`).trim() : undefined;
  const before = target && name === 'init' ? join(place, 'written.yaml') : undefined;
  const { status, output } = await runLine(here(before ? asked.replace(isNew![1]!, before) : asked));
  if (before) spawnSync('rm', ['-f', before]);
  return status === 0 || status === 1 ? undefined : `${status} (${rest.join(' ')}): ${output}`;
}

describe('shell', () => {
  test.each(named('sh'))('%s', async (_, { text }) => {
    const faults: string[] = [];
    // The content of a here-document is no command of the block.
    const commands = text.replace(/<<'?(\w+)'?\n[\s\S]*?^\1$/gm, '');
    for (const line of commands.replaceAll('\\\n', ' ').split('\n')) {
      const fault = await faultOf(line);
      if (fault !== undefined) faults.push(fault);
    }
    expect(faults, faults.join('\n')).toEqual([]);
  });

  test.each(pages)('commands in the text of %s exist, with their options', async (page) => {
    const commands = [...textOf(page).matchAll(/`svc-agent ([a-z][^`]*)`/g)].map(([, words = '']) => words);
    const wrong: string[] = [];
    for (const words of new Set(commands)) {
      const [call = ''] = words
        .replace(/\s+/g, ' ')
        .replace(/[….]+(?= |$)/g, '')
        .replace(/\[|\]/g, '')
        .split(/ (?:--|\|) /);
      const values = call.replaceAll(/\b[A-Z]+(?:=[A-Z]+)?\b/g, (word) =>
        word.includes('=') ? 'frontend=1' : 'x',
      );
      const { status } = await commandHere([...values.trim().split(/\s+/), '--help'], env, place);
      if (status !== 0) wrong.push(words);
    }
    expect(wrong, wrong.join('\n')).toEqual([]);
  });
});

const hasAmtool = isInstalled('amtool');
function amtool(text: string, ...args: string[]) {
  const file = join(place, 'alertmanager.yml');
  writeFileSync(file, text);
  return spawnSync('amtool', [...args, ...(args[0] === 'config' ? [`--config.file=${file}`] : [file])], {
    encoding: 'utf8',
  });
}
/** The fault that Alertmanager's own program finds in a configuration; undefined if there is none. */
function amtoolFault(text: string): string | undefined {
  const { status, stdout, stderr } = amtool(text, 'check-config');
  return status === 0 ? undefined : stdout + stderr;
}

const keys = new Set(Object.keys((configurationSchema() as { properties: object }).properties));

describe('configurations', () => {
  test.each(named('yaml'))('%s', async (_, { text }) => {
    const document = parse(text) as Record<string, unknown>;
    const isAgents = Object.keys(document).every((key) => keys.has(key));
    if ('receivers' in document) {
      if (hasAmtool) expect(amtoolFault(text)).toBeUndefined();
      return;
    }
    if (!isAgents) {
      expect(Object.keys(document)[0]).toMatch(
        /^(?:scrape_configs|containerLogMaxSize|apiVersion|initContainers|instances|config|multitenancy_enabled)$/,
      );
      if ('scrape_configs' in document && hasPromtool) {
        const { status, output } = await promtoolOver(
          { 'prometheus.yml': document },
          ...['check', 'config', '--syntax-only', 'prometheus.yml'],
        );
        expect(status, output).toBe(0);
      }
      return;
    }
    // What names its roles is complete; other parts are shown in the configuration that they are part of.
    const base = 'services' in document ? {} : (parse(configuration(0)) as Record<string, unknown>);
    const file = join(place, 'snippet.yaml');
    writeFileSync(
      file,
      here(JSON.stringify({ ...base, ...document }).replaceAll('"/', '" /')).replaceAll('" /', '"/'),
    );
    const { status, stdout, stderr } = await commandHere(['check', '-c', file], env);
    expect(status, stdout + stderr).not.toBe(2);
    if ('services' in document) expect(stdout + stderr).not.toContain('a secret in the file itself');
  });

  test.runIf(hasAmtool).each([
    ['critical', 'pagerduty,slack'],
    ['warning', 'slack'],
    ['info', 'nobody'],
  ])('Slack and PagerDuty: %s goes to %s', (severity, receivers) => {
    const { text } = blocks.find(
      ({ page, text }) => page.endsWith('notify.md') && text.includes('slack_configs'),
    )!;
    expect(amtool(text, 'config', 'routes', 'test', `severity=${severity}`).stdout.trim()).toBe(receivers);
  });

  test('each platform has a complete one', () => {
    const recipes = blocks.filter(
      ({ page, language }) => page === 'docs/how-to/platforms.md' && language === 'yaml',
    );
    const agents = recipes
      .map(({ text }) => parse(text) as object)
      .filter((document) => 'metrics' in document);
    expect(agents.length).toBeGreaterThan(4);
    expect(agents.filter((document) => !('services' in document))).toEqual([]);
  });
});

test('the HTTP API page names the paths that the listeners have, and no others', async () => {
  const [pull = '', admin = ''] = textOf('docs/http-api.md').split('## Admin listener');
  const documented = (text: string) =>
    new Set(
      [...text.matchAll(/`(?:GET|POST) (\/[^`? ]*)/g)].map(([, path]) =>
        path!.replace(/(?:NAME|ALERT).*/, '*'),
      ),
    );
  const real = async (listener: string) => {
    const answer = await fetch(`http://${agent.address(listener)}/nosuch`);
    return new Set((await answer.text()).trim().split('\n').slice(1));
  };
  expect(documented(pull)).toEqual(await real('metrics'));
  // The paths of heartbeats exist only if they are configured.
  const always = [...documented(admin)].filter((path) => !path.startsWith('/backup'));
  expect(new Set(always)).toEqual(await real('admin'));
});
