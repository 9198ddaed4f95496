import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { dispatch } from '../../../../src/agent/cli/dispatch.ts';
import { dashboards as names } from '../../../../src/monitoring/alert.ts';
import type { DashboardJson, PanelJson, StepJson } from '../../../../tools/grafana.ts';
import { newFolder } from '../../../folder.ts';
import { fakeIo } from '../../cli/fake-io.ts';
import { root } from '../../house/imports.ts';

const folder = newFolder(afterAll);
const shippedText = (name: string) => readFileSync(join(root, `dashboards/${name}.json`), 'utf8');

async function ran(...args: string[]) {
  const io = fakeIo(folder);
  const status = await dispatch(['dashboards', ...args], io);
  return { status, out: io.out(), err: io.err() };
}

async function panelOf(name: string, title: string, words: string): Promise<PanelJson> {
  const { status, out, err } = await ran(name, ...words.split(' '));
  expect([status, err]).toEqual([0, '']);
  return (JSON.parse(out) as DashboardJson).panels!.find((panel) => panel.title === title)!;
}

describe('svc-agent dashboards', () => {
  test.each([...names])('prints %s as it is shipped', async (name) => {
    expect(await ran(name)).toEqual({ status: 0, out: shippedText(name), err: '' });
  });

  test('lists them, and --help tells how', async () => {
    const { out } = await ran();
    expect(out.trim().split('\n')).toHaveLength(13);
    expect(out).toMatch(/^NAME +UID +TITLE\noverview +svc-overview +Svc \/ Overview\n/);
    const listed = JSON.parse((await ran('--list', '--json', 'agent', 'svc-logs')).out);
    expect(listed.map(({ uid }: { uid: string }) => uid)).toEqual(['svc-agent', 'svc-logs']);
    expect((await ran('--help')).out).toMatch(/^Usage: svc-agent dashboards/);
  });

  test('--out writes all, or those that are named', async () => {
    const { status, out, err } = await ran('--out', 'all/here');
    expect([status, out]).toEqual([0, '']);
    expect(err.trim().split('\n')).toHaveLength(12);
    expect(readFileSync(join(folder, 'all/here/dr.json'), 'utf8')).toBe(shippedText('dr'));
    await ran('--out', 'two', 'logs', 'agent');
    expect(readdirSync(join(folder, 'two')).sort()).toEqual(['agent.json', 'logs.json']);
  });

  test('--kubernetes makes ConfigMaps that a sidecar finds', async () => {
    const one = parse((await ran('--kubernetes', 'logs')).out);
    expect(one).toMatchObject({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'svc-agent-dashboard-logs' },
    });
    expect(one.metadata.labels.grafana_dashboard).toBe('1');
    expect(one.data).toEqual({ 'svc-logs.json': shippedText('logs') });
    const all = JSON.parse((await ran('--kubernetes', '--json')).out);
    expect([all.kind, all.items.length]).toEqual(['List', 12]);
    await ran('--kubernetes', '--out', 'maps', 'logs');
    expect(parse(readFileSync(join(folder, 'maps/logs.yml'), 'utf8'))).toEqual(one);
  });

  test('takes names, labels, thresholds and addresses of this installation', async () => {
    const names = '--prefix p --job frontend=prod.fe --match env=prod';
    const targets = await panelOf('overview', 'Targets', names);
    expect(targets.targets![0]!.expr).toBe(
      'max by (cluster, job, instance) (up{env="prod", environment=~"$environment", cluster=~"$cluster", instance=~"$instance", job=~"prod\\\\.fe|history|matching|worker|svc-agent"})',
    );
    const traffic = await panelOf('overview', 'Traffic', names);
    expect(traffic.targets![0]!.expr).toContain(
      'rate(p_svc_frontend_client_requests{env="prod", environment=~',
    );
    const critical = await panelOf('overview', 'Critical alerts', names);
    expect(critical.targets![0]!.expr).not.toContain('ALERTS{env=');
    const heap = await panelOf(
      'process',
      'Heap',
      '--threshold SvcHeapMemory=4e9 --runbook-url https://wiki/$&/',
    );
    expect(heap.fieldConfig!.defaults.thresholds!.steps[1]!.value).toBe(4e9);
    expect(heap.links!.map(({ url }) => url)).toEqual(['https://wiki/$&/SvcHeapMemory.md']);
    const objective = '--threshold SvcFrontendAvailabilityBurn=0.99';
    const burn = await panelOf('frontend', 'Failed calls over 1h and 6h', objective);
    expect(burn.fieldConfig!.defaults.thresholds!.steps.map(({ value }) => value)).toEqual([
      null,
      0.06,
      0.144,
    ]);
    const table = await panelOf('matching', 'Task lists', '--threshold SvcTaskListBacklogGrowth=7');
    const growth = table.fieldConfig!.overrides.find(({ matcher }) => matcher.options === 'Growth')!;
    const { steps } = growth.properties.find(({ id }) => id === 'thresholds')!.value as { steps: StepJson[] };
    expect(steps[1]!.value).toBe(7);
  });

  test('the firing alerts lead to their runbooks wherever these are', async () => {
    const firing = await panelOf('overview', 'Firing alerts', '--runbook-url https://wiki');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of the cell's own value
    expect(JSON.stringify(firing.fieldConfig)).toContain('"url":"https://wiki/${__value.raw}.md"');
  });

  test.each([
    [['overvew'], 'unknown dashboard, got "overvew"; did you mean overview?'],
    [['logs', 'agent'], 'prints one dashboard, got "logs agent"; name one, or use --out DIR or --kubernetes'],
    [['--match', 'env'], '--match: not LABEL=VALUE, got "env"; write --match LABEL=VALUE'],
    [['--match', '1a=b'], '--match: not LABEL=VALUE'],
    [['--job', 'front=x'], '--job: unknown role, got "front"; did you mean frontend?'],
    [['--threshold', 'SvcHeapMemry=1'], 'did you mean SvcHeapMemory?'],
    [['--prefix', '9x'], '--prefix: not a prefix of a metric name, got "9x"'],
    [['--pack', 'spec'], 'svc-agent dashboards: unknown option'],
  ])('wrong usage %j ends with 2', async (args, message) => {
    const { status, out, err } = await ran(...args);
    expect([status, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });

  test('a folder that cannot be made ends with 1', async () => {
    const { status, err } = await ran('--out', '/dev/null/x');
    expect(status).toBe(1);
    expect(err).toMatch(/^svc-agent: \/dev\/null\/x\/overview\.json: cannot be written, ENOTDIR/);
  });
});
