import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { isInstalled } from '../installed.ts';
import { until } from '../until.ts';
import { writeAgentFile } from './agent-file.ts';
import { command, mainFile, start, startAgent } from './process.ts';

// Work that takes long shows its progress on a terminal and in the status, and nowhere else.

const place = newFolder(afterAll);
const file = join(place, 'agent.yaml');
const backup = (name: string, bytesPerSecond: number, level: string) => `  - name: ${name}
    store: main
    database: persistence
    type: full
    source: {files: {directory: ${place}, pattern: '^nightly.*\\.dump$', settle: 100ms, takenFrom: primary}}
    integrity: {level: ${level}, bytesPerSecond: ${bytesPerSecond}}
`;

beforeAll(() => {
  const bytes = Buffer.alloc(3_000_000, 'svc');
  writeFileSync(join(place, 'nightly.dump'), bytes);
  const digest = createHash('sha256').update(bytes).digest('hex');
  writeFileSync(join(place, 'nightly.dump.sha256'), `${digest}  nightly.dump\n`);
  writeAgentFile(
    place,
    `stores: [{name: main, kind: mysql, address: '127.0.0.1:1', databases: {persistence: svc}}]
backups:
${backup('slow', 1_000_000, 'checksum')}${backup('stuck', 50_000, 'checksum')}`,
  );
});

const hasScript = isInstalled('script');
/** Runs on a terminal with 100 columns. */
const onTerminal = (args: string, env: Record<string, string> = {}) =>
  start('script', ['-qec', `stty cols 100; exec ${process.execPath} ${mainFile} ${args}`, '/dev/null'], {
    ...{ TERM: 'xterm', LANG: 'C.UTF-8', NO_COLOR: '1' },
    ...env,
  });

describe('the verification of a backup', () => {
  test.skipIf(!hasScript)(
    'probe: bytes, rate and time left on one line, which is gone at the end',
    async () => {
      const probing = onTerminal(`probe backup/slow -c ${file}`);
      expect(await probing.ended, probing.output()).toBe(0);
      const shown = probing
        .output()
        .split('\r')
        .map((line) => line.replace(/^\u001b\[K/, ''));
      const shares = shown.flatMap((line) => {
        const [, share] =
          /^█+░+ 1\/2 verifying nightly\.dump [█░]{10} (\d+)% of 3000 kB, \d+ [kM]?B\/s, \d+s left$/.exec(
            line,
          ) ?? [];
        return share === undefined ? [] : [Number(share)];
      });
      expect(shares.length).toBeGreaterThan(1);
      expect([...shares].sort((one, other) => one - other)).toEqual(shares);
      expect(probing.output()).toMatch(/\r\u001b\[KPROBE +RESULT/);
    },
  );

  test.skipIf(!hasScript)('ASCII where the terminal shows no more', async () => {
    const probing = onTerminal(`probe backup/stuck -c ${file}`, { LANG: 'C' });
    await until('the bar is shown', () => /verifying nightly\.dump #*\.+ \d+% of/.test(probing.output()));
    probing.child.stdin!.write('\u0003');
    expect(await probing.ended, probing.output()).toBe(1);
    expect(probing.output()).not.toMatch(/[^\x00-\x7f]/);
  });

  test('nothing of it where stdout is no terminal', () => {
    const { stdout, stderr, status } = command(['probe', 'backup/slow', '-c', file]);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^PROBE/);
    expect(stdout).not.toMatch(/[\r\u001b]|verifying/);
  });

  test('the status of a running agent tells it, between two checks too', async () => {
    const agent = await startAgent(file);
    const url = `http://${agent.address('admin')}`;
    await until('the verification is under way', async () => {
      const { probes } = (await (await fetch(`${url}/api/status`)).json()) as {
        probes: { name: string; isRunning: boolean; progress?: Record<string, number> }[];
      };
      const { isRunning, progress } = probes.find(({ name }) => name === 'backup/stuck')!;
      if (isRunning || !progress) return undefined;
      expect(progress).toEqual({
        doneBytes: expect.any(Number),
        totalBytes: 3_000_000,
        bytesPerSecond: expect.any(Number),
      });
      return true;
    });
    const { stdout } = command(['status', '--url', url]);
    expect(stdout).toMatch(/^backup\/stuck .* verifying \.*#*\.+ \d+% of 3000 kB, \d+ k?B\/s, \S+ left$/m);
    await agent.end();
  });
});
