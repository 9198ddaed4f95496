import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { agentFile } from './agent-file.ts';

const env = { WORD: 'dc1', NUMBER: '300', EMPTY: '', NESTED: '$' + '{WORD}', TRUTH: 'true' };
const v = (inside: string) => `$\{${inside}}`;

async function load(content: string) {
  const { config, faults } = await loadConfig({ file: agentFile(content), env, cwd: '/' });
  return { config, faults };
}

describe('variables', () => {
  test.each([
    [v('WORD'), 'dc1'],
    [`a-${v('WORD')}-b`, 'a-dc1-b'],
    [v('MISSING:fallback'), 'fallback'],
    [v('WORD:fallback'), 'dc1'],
    [`"${v('NUMBER')}"`, '300'],
    [v('NESTED'), v('WORD')],
    [`"$${v('WORD')}"`, v('WORD')],
    [v('MISSING:10.0.0.1:8000'), '10.0.0.1:8000'],
    [`'${v('MISSING:it')}'`, 'it'],
  ])('instance: %s is %s', async (written, meant) => {
    const { config, faults } = await load(`instance: ${written}\n`);
    expect(faults).toEqual([]);
    expect(config!.instance).toBe(meant);
  });

  test('an unquoted one is read as YAML reads it', async () => {
    const { config } = await load(`limits: {seriesPerMetric: 10}\nlog:\n  stdout: ${v('TRUTH')}\n`);
    expect(config!.log.stdout).toBe(true);
    const { config: other } = await load(
      `limits:\n  series: ${v('MISSING:4000')}\n  seriesPerMetric: ${v('NUMBER')}\n`,
    );
    expect(other!.limits).toMatchObject({ series: 4000, seriesPerMetric: 300 });
  });

  test('a value from a variable never shows in a message', async () => {
    const { faults } = await load(`log:\n  level: ${v('WORD')}\n`);
    expect(faults[0]!.got).toBe(v('WORD'));
    expect(JSON.stringify(faults)).not.toContain('dc1');
  });
});

describe('YAML', () => {
  test('anchors and merge keys', async () => {
    const { config, faults } = await load(
      'services:\n  frontend: &role\n    logs: &logs {paths: [/a], levelKey: l}\n  history:\n    <<: *role\n  matching:\n    logs: {<<: *logs, paths: [/b]}\n',
    );
    expect(faults).toEqual([]);
    expect(config!.services.map(({ logs }) => [logs!.paths, logs!.levelKey])).toEqual([
      [['/a'], 'l'],
      [['/a'], 'l'],
      [['/b'], 'l'],
    ]);
  });

  test('an anchor that holds itself, and ones that multiply, end in a fault', async () => {
    expect((await load('services: &a\n  frontend: *a\n')).faults).not.toEqual([]);
    const lines = [
      'a0: &a0 [x]',
      ...Array.from({ length: 12 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n}, `.repeat(9)}]`),
    ];
    const { faults } = await load(`${lines.join('\n')}\n`);
    expect(faults.some(({ what }) => what === 'too many values')).toBe(true);
  });

  test('deep nesting ends in a fault', async () => {
    for (const depth of [100, 30_000]) {
      const { faults } = await load(`roles: ${'['.repeat(depth)}${']'.repeat(depth)}\n`);
      expect(faults.map(({ what }) => what)).toContain('nested too deeply');
    }
  });

  test.each([
    ['larger than 1 MiB', `# ${'x'.repeat(1024 * 1024)}\n`],
    ['not UTF-8', Uint8Array.of(0x61, 0x3a, 0x20, 0xff)],
  ])('%s', async (what, content) => {
    const { faults } = await loadConfig({ file: agentFile(content), env, cwd: '/' });
    expect(faults.map((fault) => fault.what)).toEqual([what]);
  });

  test('a byte-order mark and Windows line ends are fine', async () => {
    const { config } = await load('\uFEFFinstance: a\r\nlog: {level: warn}\r\n');
    expect(config).toMatchObject({ instance: 'a', log: { level: 'warn' } });
  });
});
