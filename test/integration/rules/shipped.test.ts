import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { agentMetrics } from '../../../src/core/agent-metrics.ts';
import { catalog } from '../../../src/core/catalog.ts';
import { caseFiles, ruleFiles } from '../../../tools/shipped.ts';
import { isInstalled } from '../../installed.ts';
import { bySize } from '../../size.ts';
import { root } from '../../unit/house/imports.ts';
import { queriesOf, runbookFiles } from '../../unit/monitoring/runbooks.ts';
import { hasPromtool, promtool, promtoolOver } from './promtool.ts';

/** One series of every existing metric, for each of four agents. */
function someOfAll() {
  const agents = ['a', 'b', 'c', 'd'].map((instance, index) => ({
    cluster: `dc${index % 2}`,
    instance,
    pod: instance,
  }));
  return [...catalog, ...agentMetrics].flatMap(({ name, kind, tags }) =>
    agents.flatMap((agent) => {
      const labels = Object.entries({
        ...agent,
        svc_service: 'history',
        ...Object.fromEntries(tags.map((tag) => [tag, 'x'])),
      });
      const text = labels.map(([label, value]) => `${label}="${value}"`).join();
      const parts =
        kind === 'histogram' ? ['_bucket{le="1",', '_bucket{le="+Inf",', '_sum{', '_count{'] : ['{'];
      return parts.map((part) => ({ series: `${name}${part}${text}}`, values: '1+1x20' }));
    }),
  );
}

const hasAmtool = isInstalled('amtool');
const place = (path: string) => join(root, path);
const cases = caseFiles();
const rules = ruleFiles().map(([path]) => path);
/**
 * Which cases promtool evaluates with all rules, which takes minutes. alerts.test.ts always runs the cases of all rules, with the
 * rules of one name.
 */
const asShipped = bySize({
  short: ['spec', 'recording'],
  long: [],
  nightly: cases.map(([path]) => basename(path, '.test.yml')),
});

describe.skipIf(!hasPromtool)('promtool', () => {
  /** The cases are written where `npm run generate` puts them, so that they are there after a test run, too. */
  beforeAll(() => {
    mkdirSync(place('rules/tests'), { recursive: true });
    for (const [path, text] of cases) writeFileSync(place(path), text);
  });

  test.each(rules)('check rules %s, every lint fatal', (path) => {
    const { status, output } = promtool('check', 'rules', '--lint=all', '--lint-fatal', place(path));
    expect(status, output).toBe(0);
    expect(output).toMatch(/SUCCESS: \d+ rules found/);
  });

  // Each takes up to 90 s of one core.
  test.each(asShipped)(
    'test rules rules/tests/%s.test.yml, beside the shipped rules',
    (name) => {
      const { status, output } = promtool('test', 'rules', place(`rules/tests/${name}.test.yml`));
      expect(status, output).toBe(0);
    },
    1_800_000,
  );

  test.each(cases)('%s names a rule file that is there', (_, text) => {
    const [, ruleFile] = /rule_files:\n\s+- \.\.\/(\S+)/.exec(text)!;
    expect(rules).toContain(`rules/${ruleFile}`);
  });

  test('every query of the runbooks is one', async () => {
    const rules = runbookFiles.flatMap(queriesOf).map((expr, index) => ({ record: `query_${index}`, expr }));
    const { status, output } = await promtoolOver(
      { 'q.yml': { groups: [{ name: 'q', rules }] } },
      'check',
      'rules',
      'q.yml',
    );
    expect(status, output).toBe(0);
    expect(output).toContain(`SUCCESS: ${rules.length} rules found`);
  });

  test('every query of the runbooks runs over two clusters with two agents each', async () => {
    const queries = runbookFiles.flatMap(queriesOf);
    const wrong = queries.map((expr) => ({
      expr,
      eval_time: '10m',
      exp_samples: [{ labels: '{no="one"}', value: 1 }],
    }));
    const tests = [{ interval: '1m', input_series: someOfAll(), promql_expr_test: wrong }];
    const { output } = await promtoolOver({ 'q.yml': { rule_files: [], tests } }, 'test', 'rules', 'q.yml');
    expect(output).not.toMatch(/\berr:/);
    expect(output.match(/^\s+expr: /gm)).toHaveLength(queries.length);
  });

  test.each(['prometheus', 'aggregates'])('check config deploy/prometheus/%s.yml', (name) => {
    const { status, output } = promtool('check', 'config', place(`deploy/prometheus/${name}.yml`));
    expect(status, output).toBe(0);
  });
});

describe.skipIf(!hasAmtool)('amtool', () => {
  const config = place('deploy/alertmanager/alertmanager.yml');
  const amtool = (...args: string[]) => spawnSync('amtool', args, { encoding: 'utf8' });

  test('check-config', () => {
    const { status, stderr } = amtool('check-config', config);
    expect(status, stderr).toBe(0);
  });

  test.each([
    ['critical', 'on-call'],
    ['warning', 'tickets'],
    ['info', 'log-book'],
  ])('what is %s goes to %s', (severity, receiver) => {
    const { stdout } = amtool('config', 'routes', 'test', `--config.file=${config}`, `severity=${severity}`);
    expect(stdout.trim()).toBe(receiver);
  });
});
