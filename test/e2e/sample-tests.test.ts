import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { command, commandHere } from './process.ts';

// `svc-agent test`: what a configuration makes of sample lines, pages and datagrams. Expected values are counted by hand.

const place = newFolder(afterAll);
let count = 0;

const configuration = `
roles: [frontend]
services:
  frontend:
    logs:
      paths: [/var/log/svc/frontend*.log]
      rules:
        - {name: slow_queries_total, type: counter, help: Slow queries., match: {msg: slow query}, labels: {shard: shard-id}}
  history:
    logs: {paths: [/var/log/svc/history*.log]}
    scrape: http://127.0.0.1:9/metrics
    statsd: 127.0.0.1:0
    vocabulary: {metrics: {store_calls: svc_persistence_requests}}
admin: ~
`;

function written(tests: string): string {
  const directory = join(place, String(count++));
  mkdirSync(directory);
  writeFileSync(join(directory, 'agent.yaml'), configuration);
  writeFileSync(
    join(directory, 'sample.log'),
    '{"level":"error","ts":"2026-01-01T00:00:00Z","msg":"x"}\n'.repeat(3),
  );
  const file = join(directory, 'rules.test.yaml');
  writeFileSync(file, tests);
  return file;
}

test('NaN and the infinities can be expected', () => {
  const file = written(`
config: agent.yaml
tests:
  - name: values without digits
    role: history
    page: |
      # TYPE ratio gauge
      ratio{a="1"} NaN
      ratio{a="2"} +Inf
      ratio{a="3"} -Inf
    expect: {'ratio{a="1"}': NaN, 'ratio{a="2"}': +Inf, 'ratio{a="3"}': -Inf}
  - name: another number
    role: history
    page: ratio 1
    expect: {ratio: NaN}
`);
  const { status, stdout } = command(['test', file]);
  expect([status, stdout]).toEqual([
    1,
    expect.stringMatching(/^passed {2}values without digits\n.*\n {2}ratio: 1, expected NaN\n/),
  ]);
});

const passing = `
config: agent.yaml
tests:
  - name: slow queries are counted by shard
    role: frontend
    lines: |
      {"level":"warn","ts":"2026-01-01T00:00:00Z","msg":"slow query","shard-id":7}
      {"level":"warn","ts":"2026-01-01T00:00:00Z","msg":"slow query","shard-id":7}
      {"level":"info","ts":"2026-01-01T00:00:00Z","msg":"slow"}
      {"level":
    expect:
      slow_queries_total{shard="7"}: 2
      svc_log_entries_total{level="warn"}: 2
      svc_log_lines_dropped_total{reason="invalid_json"}: 1
      slow_queries_total{shard="8"}: ~
  - name: lines of a file, of a role that this host does not watch
    role: history
    linesFile: sample.log
    expect: {'svc_log_entries_total{svc_service="history",level="error"}': 3}
  - name: a page and datagrams are translated by the vocabulary
    role: history
    page: |
      # TYPE store_calls counter
      store_calls{operation="UpdateShard",run_id="1"} 3
      # TYPE took histogram
      took_bucket{le="1"} 4
      took_bucket{le="+Inf"} 5
      took_sum 7.5
      took_count 5
    datagrams: |
      store_calls:2|c|#operation:GetShard
    expect:
      svc_persistence_requests{operation="UpdateShard"}: 3
      svc_persistence_requests{operation="GetShard"}: 2
      svc_persistence_requests: 5
      took_bucket{le="1"}: 4
      took_sum: 7.5
      store_calls: ~
`;

test('tests of lines, a page and datagrams pass', () => {
  const { status, stdout, stderr } = command(['test', written(passing)]);
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^passed {2}slow queries.*\n(?:passed .*\n){2}3 passed, 0 failed\n$/);
  expect(status).toBe(0);
});

test('the example of the help passes with the rule that it is about', async () => {
  const { stdout: help } = await commandHere(['test', '--help']);
  const example = /^ {2}config: [\s\S]*?\n\n/m.exec(help)![0].replaceAll(/^ {2}/gm, '');
  const rule =
    '{name: my_slow_queries_total, type: counter, match: {msg: slow query}, labels: {shard: shard-id}}';
  const file = written(example);
  writeFileSync(
    join(dirname(file), 'agent.yaml'),
    `services: {history: {logs: {paths: [/var/log/svc/*.log], rules: [${rule}]}, statsd: 127.0.0.1:0}}\n`,
  );
  const { status, stdout } = await commandHere(['test', file]);
  expect([stdout, status]).toEqual([
    expect.stringMatching(/^passed {2}slow queries.*\n1 passed, 0 failed\n$/),
    0,
  ]);
});

test.each([
  [
    'slow_queries_total{shard="7"}: 2',
    'slow_queries_total{shard="7"}: 3',
    'slow_queries_total{shard="7"}: 2, expected 3',
  ],
  [
    'slow_queries_total{shard="8"}: ~',
    'slow_queries_total: ~',
    'slow_queries_total: 2, expected no such series',
  ],
  [
    'svc_persistence_requests: 5',
    'svc_persistence_request: 5',
    'svc_persistence_request: no such series, expected 5',
  ],
  ['took_sum: 7.5', '"took_sum{": 7.5', 'took_sum{: not a selector; use the form name{label="value"}'],
])('a test with %s as %s fails and says what was found', async (right, wrong, message) => {
  const { status, stdout } = await commandHere(['test', written(passing.replace(right, wrong))]);
  expect(status).toBe(1);
  expect(stdout).toContain(`\n  ${message}`);
  expect(stdout).toMatch(/2 passed, 1 failed\n$/);
});

test('a failure lists the series that changed, and not those of other roles, which are there at 0', async () => {
  const tests = `config: agent.yaml
tests:
  - name: errors
    role: history
    lines: '{"level":"error","ts":"2026-01-01T00:00:00Z","msg":"x","logger":"y"}
      '
    expect: {'svc_log_entries_total{level="error"}': 2}
`;
  const { stdout } = await commandHere(['test', written(tests)]);
  expect(stdout.match(/^ {4}\S.*$/gm)).toEqual([
    '    svc_log_entries_total{level="error",logger="y",svc_service="history"} 1',
  ]);
});

test.each([
  ['tests: []\n', 'rules.test.yaml:1:1: tests: empty; give at least one entry'],
  ['config: agent.yaml\ntest: []\n', 'test: unknown key; did you mean tests?'],
  [
    'config: agent.yaml\ntests: [{name: a, role: fronted, lines: "x\\n", expect: {x: ~}}]\n',
    'rules.test.yaml:2:25: tests[0].role: unknown role, got "fronted"; did you mean frontend?',
  ],
  [
    'config: agent.yaml\ntests: [{name: a, role: matching, page: "x 1\\n", expect: {x: ~}}]\n',
    'tests[0].role: unknown role, got "matching"; services has frontend, history',
  ],
  [
    'config: agent.yaml\ntests: [{name: a, role: history, page: "{", expect: {x: ~}}]\n',
    'page of history: refused',
  ],
  [
    'config: agent.yaml\ntests: [{name: a, role: history, linesFile: /dev/zero, expect: {x: ~}}]\n',
    '/dev/zero: larger than 64 MiB; name a smaller sample',
  ],
  [
    'config: agent.yaml\ntests: [{name: a, role: history, pageFile: /dev/zero, expect: {x: ~}}]\n',
    '/dev/zero: larger than 64 MiB; name a smaller sample',
  ],
  [
    'config: agent.yaml\ntests: [{name: a, role: history, expect: {x: ~}}]\n',
    'tests[0]: no sample; give lines, page or datagrams',
  ],
  [
    'config: agent.yaml\ntests: [{name: a, role: history, lines: "x\\n", linesFile: y, expect: {x: ~}}]\n',
    'tests[0].linesFile: given beside lines, got "y"; use one of them',
  ],
  [
    'config: agent.yaml\ntests: [{name: a, role: history, page: "x 1\\n", pageFile: y, expect: {x: ~}}]\n',
    'tests[0].pageFile: given beside page, got "y"; use one of them',
  ],
  [
    'config: agent.yaml\ntests: [{name: a, role: history, expect: {}}]\n',
    'tests[0].expect: empty; name at least one series',
  ],
  [
    'config: agent.yaml\ntests: [{name: a, role: history, expect: {x: 1, x: 2}}]\n',
    'tests[0].expect.x: duplicate key; remove it here or in line 2',
  ],
  ['config: none.yaml\ntests: [{name: a, role: history, datagrams: "x:1|c", expect: {x: ~}}]\n', 'none.yaml'],
])('the test file %j is wrong', async (text, message) => {
  const { status, stdout, stderr } = await commandHere(['test', written(text)]);
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
});

test('--json has a row for each test, and a file is needed', async () => {
  const { stdout } = await commandHere(['test', written(passing), '--json']);
  expect(
    (JSON.parse(stdout) as { name: string; failures: string[] }[]).map(({ failures }) => failures),
  ).toEqual([[], [], []]);
  expect((await commandHere(['test'])).stderr).toContain('svc-agent test: no test file');
  expect((await commandHere(['test', 'none.yaml'])).stderr).toBe(
    'svc-agent: none.yaml: missing; name a file that exists\n',
  );
});
