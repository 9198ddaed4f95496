import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { root } from '../unit/house/imports.ts';
import { until } from '../until.ts';
import { type Held, hasAlertmanager } from './alertmanager.ts';
import { type Running, start } from './process.ts';
import { hasPrometheus } from './prometheus.ts';

// The first ten minutes of a new user, with a fresh clone and README alone. Installing takes minutes, so it is part of the
// nightly run; demo-alert.nightly.test.ts plays the same on the built program.

const place = newFolder(afterAll);
let demo: Running | undefined;
/** Does what Ctrl-C does in a terminal: it reaches every process of the group. */
const interrupt = () => {
  if (demo?.child.exitCode === null && demo.child.signalCode === null)
    process.kill(-demo.child.pid!, 'SIGINT');
  return demo?.ended;
};
afterAll(() => interrupt());
const clone = join(place, 'svc-agent');

/** Runs one line of README in the clone. */
function run(line: string): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', line], { cwd: clone, encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

test.skipIf(!hasPrometheus || !hasAlertmanager)(
  'from an empty folder to an alert in Alertmanager, by what README prints',
  async () => {
    expect(spawnSync('git', ['clone', '-q', root, clone]).status).toBe(0);
    expect(existsSync(join(clone, 'node_modules'))).toBe(false);
    const readme = readFileSync(join(clone, 'README.md'), 'utf8');
    const [tried = '', used = ''] = [...readme.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text]) => text!);
    const [example = ''] = [...readme.matchAll(/```yaml\n(roles:[\s\S]*?)```/g)].map(([, text]) => text!);

    // The section "Try it".
    const [first = ''] = tried.split('\n');
    expect(first).toMatch(/^npm start\b/);
    const started = start('setsid', ['bash', '-c', `exec ${first}`], {}, clone);
    demo = started;
    const shown = (pattern: RegExp) =>
      until(`${pattern} is printed`, () => pattern.exec(started.output())?.[1], { withinMs: 300_000 });
    const alertmanager = await shown(/^ {2}Alertmanager +(http:\/\/[^/\s]+)/m);
    const page = await shown(/^ {2}status page +(http:\/\/\S+)/m);
    expect(await (await fetch(page)).text()).toContain('<title>svc-agent</title>');
    await until(
      'the alert is in Alertmanager',
      async () => {
        const held = (await (await fetch(`${alertmanager}/api/v2/alerts`)).json()) as Held[];
        return held.some(({ labels }) => labels.alertname === 'SvcStoreDown');
      },
      { withinMs: 400_000 },
    );
    await interrupt();
    // npm ends at once; the demo still stops what it started.
    const isGone = () =>
      fetch(alertmanager).then(
        () => undefined,
        () => true,
      );
    await until('Alertmanager has ended', isGone);

    // The section "Use it": the commands as they are printed, with the configuration that README shows.
    const lines = used
      .split('\n')
      .filter((line) => line.startsWith('npm run build') || line.startsWith('node '));
    expect(lines.map((line) => line.split('  ')[0])).toEqual([
      'npm run build',
      'node dist/main.js init --service-config /etc/svc/production.yaml --out agent.yaml',
      'node dist/main.js check',
      'node dist/main.js doctor',
      'node dist/main.js run',
    ]);
    expect(run(lines[0]!).status).toBe(0);
    spawnSync('bash', ['-c', 'cat > agent.yaml'], { cwd: clone, input: example });
    const checked = run(lines[2]!);
    expect(checked.status, checked.output).toBe(0);
    const examined = run(lines[3]!);
    // Nothing listens at the address of README's role; doctor says so, and what to do.
    expect(examined.status, examined.output).toBe(1);
    expect(examined.output).toContain('correct the address in services.frontend.health');
  },
  900_000,
);
