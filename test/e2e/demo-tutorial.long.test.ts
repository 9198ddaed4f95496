import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { bySize } from '../size.ts';
import { until } from '../until.ts';
import { hasAlertmanager } from './alertmanager.ts';
import { overWithinMs, startDemo } from './demo.ts';
import { mainFile } from './process.ts';
import { hasPrometheus } from './prometheus.ts';

/** The shell blocks of the tutorial, in order; the first one starts the demo. */
const tutorial = [
  ...readFileSync(new URL('../../docs/tutorial.md', import.meta.url), 'utf8').matchAll(
    /```sh\n([\s\S]*?)```/g,
  ),
].map(([, text = '']) => text);

/** The nightly run waits for the end of the alert. */
const waitsForEnd = bySize({ short: false, long: false, nightly: true });
/** Blocks start programs, and repeating them at once would only slow the demo down. */
const patience = { everyMs: 500 };

/** Runs a block of the tutorial as it is printed, except for ports that were in use when the demo started. */
function playBlock(index: number, ports: Readonly<Record<number, string>>): string {
  const text = tutorial[index]!.replaceAll('node dist/main.js', `${process.execPath} ${mainFile}`).replaceAll(
    /127\.0\.0\.1:(\d+)/g,
    (usual, port) => ports[port] ?? usual,
  );
  const { status, stdout, stderr } = spawnSync('bash', ['-c', text], { encoding: 'utf8', timeout: 240_000 });
  if (status === null || status > 1) throw new Error(`${text}: ${status}: ${stderr}`);
  return stdout;
}

/** A poll that repeats until the block prints all of this; its last output is in the error. */
const prints =
  (index: number, ports: Readonly<Record<number, string>>, patterns: readonly RegExp[]) => () => {
    const text = playBlock(index, ports);
    if (patterns.every((pattern) => pattern.test(text))) return true;
    throw new Error(`it printed\n${text}`);
  };

test.skipIf(!hasPrometheus || !hasAlertmanager)(
  'plays the tutorial as it is printed, until the alert is over',
  async () => {
    const demo = startDemo(['--incident-after', '0s']);
    onTestFinished(() => void demo.end());
    const address = (what: string) => demo.shown(new RegExp(`^ {2}${what} +http://([^/\\s]+)`, 'm'));
    const end = await demo.shown(/^ {2}curl -X POST http:\/\/([^/\s]+)\/end$/m);
    const ports = {
      9464: await address('metrics'),
      9465: await address('status page'),
      9090: await address('Prometheus'),
      9093: await address('Alertmanager'),
      7930: end,
    };
    expect(tutorial[0]).toBe('npm start\n');
    await until('status says that all is well', prints(1, ports, [/well/]), patience);
    await until(
      'the pages have numbers',
      prints(2, ports, [/^svc_log_entries_total/m, /^svc_frontend_client_requests/m]),
      patience,
    );
    playBlock(3, ports);
    await until(
      'status and probe say what is down',
      prints(4, ports, [/main\/persistence/, /"reason": ?"refused"/]),
      patience,
    );
    await until(
      'the alert is in Alertmanager',
      prints(5, ports, [/^"alertname":"SvcStoreDown"\s*$/]),
      // It takes two minutes, and each attempt starts programs.
      { everyMs: 5000 },
    );
    expect(playBlock(7, ports).trim()).toBe('"alertname":"SvcStoreDown"');
    playBlock(6, ports);
    await until('status says that all is well again', prints(1, ports, [/well/]), patience);
    if (!waitsForEnd) return;
    const isOver = () => !playBlock(5, ports).includes('SvcStoreDown');
    await until('the alert is over', isOver, { everyMs: 2000, withinMs: overWithinMs });
    expect(playBlock(7, ports)).toBe('');
  },
  1_200_000,
);
