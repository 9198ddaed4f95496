import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { isAlive, ran, script } from '../command.ts';
import { newFolder } from '../folder.ts';
import { pollUntil } from '../until.ts';

describe('a command that hangs', () => {
  let folder: string;
  beforeEach(() => {
    folder = newFolder();
  });

  /** A program that records its process and never ends. */
  const hangs = `require("fs").writeFileSync(process.argv[1] + ".new", String(process.pid));
    require("fs").renameSync(process.argv[1] + ".new", process.argv[1]); setInterval(() => {}, 1000);`;
  const deaf = `process.on("SIGTERM", () => {}); ${hangs}`;
  const noted = (name: string) =>
    pollUntil(
      async () => {
        try {
          return Number(readFileSync(join(folder, name), 'utf8'));
        } catch {
          return 0;
        }
      },
      (pid) => pid > 0,
    );
  const gone = (pid: number) =>
    pollUntil(
      async () => isAlive(pid),
      (alive) => !alive,
    );

  test.each([
    ['ends when asked to', hangs],
    ['takes no notice', deaf],
  ])('and %s', async (_, text) => {
    const stop = new AbortController();
    const running = ran(script(text, join(folder, 'pid')), { signal: stop.signal });
    const pid = await noted('pid');
    stop.abort();
    expect((await running).reason).toBe('too_slow');
    await gone(pid);
  });

  test('what it started is ended with it', async () => {
    const stop = new AbortController();
    const text = `require("child_process").spawn(process.execPath, ["-e", process.argv[2], process.argv[3]], { stdio: "inherit" }); ${hangs}`;
    const running = ran(script(text, join(folder, 'pid'), deaf, join(folder, 'child')), {
      signal: stop.signal,
    });
    const pids = [await noted('pid'), await noted('child')];
    stop.abort();
    expect((await running).reason).toBe('too_slow');
    for (const pid of pids) await gone(pid);
  });

  test('what it left behind when it ended is ended too', async () => {
    const text = `require("child_process").spawn(process.execPath, ["-e", process.argv[1], process.argv[2]], { stdio: "inherit" }).unref();
      const { existsSync } = require("fs"); const wait = () => existsSync(process.argv[2]) ? console.log("0.8") : setTimeout(wait, 20); wait();`;
    const { stdout } = await ran(script(text, deaf, join(folder, 'child')));
    expect(stdout).toBe('0.8\n');
    await gone(await noted('child'));
  });

  test('one that left its group and keeps the output open is not waited for', async () => {
    const text = `require("child_process").spawn(process.execPath, ["-e", process.argv[1], process.argv[2]], { stdio: "inherit", detached: true }).unref();
      const { existsSync } = require("fs"); const wait = () => existsSync(process.argv[2]) ? console.log("0.8") : setTimeout(wait, 20); wait();`;
    const { stdout } = await ran(script(text, hangs, join(folder, 'child')));
    const pid = await noted('child');
    process.kill(pid, 'SIGKILL');
    expect(stdout).toBe('0.8\n');
    await gone(pid);
  });

  test('there is no time from the start: nothing is started', async () => {
    expect((await ran(script(hangs, join(folder, 'pid')), { signal: AbortSignal.abort() })).reason).toBe(
      'too_slow',
    );
    expect(() => readFileSync(join(folder, 'pid'))).toThrow('ENOENT');
  });
});
