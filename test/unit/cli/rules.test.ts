import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { dispatch } from '../../../src/agent/cli/dispatch.ts';
import { newFolder } from '../../folder.ts';
import { root } from '../house/imports.ts';
import { fakeIo } from './fake-io.ts';

const folder = newFolder(afterAll);

interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

async function ran(...args: string[]) {
  const io = fakeIo(folder);
  const status = await dispatch(['rules', ...args], io);
  return { status, out: io.out(), err: io.err() };
}

async function ruleOf(alert: string, words: string): Promise<Rule> {
  const { status, out, err } = await ran(...words.split(' '));
  expect([status, err]).toEqual([0, '']);
  const { groups } = parse(out) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) => rules).find((rule) => rule.alert === alert)!;
}

describe('svc-agent rules', () => {
  test.each(['spec', 'recommended', 'recording', 'slo'])('prints pack %s as it is shipped', async (name) => {
    const { status, out } = await ran('--pack', name);
    expect([status, out]).toEqual([0, readFileSync(join(root, `rules/${name}.rules.yml`), 'utf8')]);
  });

  test('recommended is what is printed, and --out writes all', async () => {
    expect((await ran()).out).toBe((await ran('--pack', 'recommended')).out);
    const { status, out, err } = await ran('--out', 'made/here');
    expect([status, out]).toEqual([0, '']);
    expect(err.trim().split('\n')).toHaveLength(4);
    expect(readFileSync(join(folder, 'made/here/slo.rules.yml'), 'utf8')).toBe(
      (await ran('--pack', 'slo')).out,
    );
  });

  test('takes names, labels, thresholds and times of this installation', async () => {
    const down = await ruleOf('SvcServiceDown', '--pack spec --job frontend=prod-fe --label team=flow');
    expect(down.expr).toBe('up{job="prod-fe"} == 0');
    expect(down.labels).toEqual({ severity: 'critical', pack: 'spec', team: 'flow' });
    const limits = '--threshold SvcPersistenceErrorRate=25 --for SvcPersistenceErrorRate=1h30m';
    const errors = await ruleOf('SvcPersistenceErrorRate', `--pack spec --prefix p ${limits}`);
    expect(errors.expr).toBe('rate(p_svc_persistence_errors[5m]) > 25');
    expect(errors.for).toBe('1h30m');
    expect(errors.annotations.description).toContain('above 25/s');
    const urls = '--runbook-url https://wiki.example/rb/ --dashboard-url https://grafana.example';
    const linked = await ruleOf('SvcStoreDown', `--for SvcStoreDown=0s ${urls}`);
    expect(linked.for).toBeUndefined();
    expect(linked.annotations.runbook_url).toBe('https://wiki.example/rb/SvcStoreDown.md');
    expect(linked.annotations.dashboard_url).toMatch(/^https:\/\/grafana\.example\/d\/svc-persistence\?/);
    const objective = '--threshold SvcFrontendAvailabilityBurn=0.99';
    const burn = await ruleOf('SvcFrontendAvailabilityBurn', `--pack slo ${objective}`);
    expect(burn.expr).toContain('> 14.4 * (1 - 0.99)');
  });

  test('--kubernetes makes PrometheusRules, several of them a list', async () => {
    const one = parse((await ran('--kubernetes', '--pack', 'spec')).out);
    expect(one).toMatchObject({
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PrometheusRule',
      metadata: { name: 'svc-agent-spec' },
    });
    expect(one.spec).toEqual(parse((await ran('--pack', 'spec')).out));
    const two = JSON.parse((await ran('--kubernetes', '--json', '--pack', 'spec', '--pack', 'slo')).out);
    expect(two.kind).toBe('List');
    expect(two.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual([
      'svc-agent-spec',
      'svc-agent-slo',
    ]);
  });

  test.each([
    [['--pack', 'recomended'], '--pack: unknown pack, got "recomended"; did you mean recommended?'],
    [['--job', 'front=x'], '--job: unknown role, got "front"; did you mean frontend?'],
    [['--job', 'frontend'], '--job: not NAME=VALUE, got "frontend"; write --job NAME=VALUE'],
    [['--job', 'frontend='], '--job: empty, got ""; name the scrape job'],
    [['--label', '1a=b'], '--label: not a label name, got "1a"'],
    [['--label', 'pack=b'], '--label: set by the rules, got "pack"'],
    [['--threshold', 'SvcHeapMemry=1'], 'did you mean SvcHeapMemory?'],
    [['--threshold', 'SvcHeapMemory=lots'], '--threshold: not a number, got "lots"'],
    [['--threshold', 'SvcHeapMemory='], '--threshold: not a number, got ""'],
    [['--threshold', 'SvcHeapMemory= '], '--threshold: not a number, got " "'],
    [['--label', '=b'], '--label: not NAME=VALUE, got "=b"'],
    [['--threshold', 'SvcStoreDown=1'], '--threshold: the alert has no threshold, got "SvcStoreDown"'],
    [['--for', 'SvcStoreDown=5'], '--for: not a duration, got "5"'],
    [['--for', 'SvcFrontendLatencyBurn=5m'], '--for: unknown alert of these packs'],
    [['--prefix', '9x'], '--prefix: not a prefix of a metric name, got "9x"'],
    [
      ['--runbook-url', 'wiki.example/rb'],
      '--runbook-url: not a URL of http or https without credentials, got "wiki.example/rb"; use the form https://wiki.example.com/runbooks',
    ],
    [
      ['--dashboard-url', 'https://admin:swordfish@grafana.example'],
      '--dashboard-url: not a URL of http or https without credentials, got "https://…@grafana.example"',
    ],
    [['--dashboard-url', 'ftp://g'], '--dashboard-url: not a URL of http or https without credentials'],
    [['x.yml'], 'svc-agent rules: surplus argument, got "x.yml"'],
  ])('wrong usage %j ends with 2', async (args, message) => {
    const { status, out, err } = await ran(...args);
    expect([status, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });

  test('a folder that cannot be made ends with 1', async () => {
    const { status, err } = await ran('--out', '/dev/null/x');
    expect(status).toBe(1);
    expect(err).toMatch(/^svc-agent: \/dev\/null\/x\/spec\.rules\.yml: cannot be written, ENOTDIR/);
  });
});
