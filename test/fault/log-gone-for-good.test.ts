import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/agent/config/load.ts';
import type { AgentConfig } from '../../src/agent/config/types.ts';
import { registrySettings } from '../../src/agent/intakes.ts';
import { createLogPipeline } from '../../src/agent/log-pipeline.ts';
import { createSelfMetrics } from '../../src/agent/self-metrics.ts';
import type { Log } from '../../src/core/ports.ts';
import { createDurableStore } from '../../src/core/registry/durable-store.ts';
import { createRegistry } from '../../src/core/registry/registry.ts';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import { watchFaults } from '../log-faults.ts';
import { createTail } from '../tail.ts';
import { until } from '../until.ts';

test('a log that is deleted and not written again is gone; one that is written again is not', async () => {
  const tail = createTail({ paths: ['app.log'] });
  const faults = watchFaults(tail, ['app.log']);
  tail.create('app.log', 'a\n');
  expect(await faults.round()).toEqual([]);
  tail.remove('app.log');
  // A rotation may be under way.
  expect(await faults.round()).toEqual([]);
  const found = { kind: 'gone', path: tail.path('app.log'), services: ['history'] };
  expect(await faults.round()).toEqual([{ ...found, sinceMs: 1_767_225_640_000 }]);
  expect(await faults.round()).toEqual([{ ...found, sinceMs: 1_767_225_640_000 }]);
  tail.create('app.log', 'b\n');
  expect(await faults.round()).toEqual([]);
});

test('of a pattern with wildcards, the last file counts', async () => {
  const tail = createTail({ paths: ['app-*.log'] });
  const faults = watchFaults(tail, ['app-*.log']);
  tail.create('app-1.log', 'a\n');
  tail.create('app-2.log', 'b\n');
  await faults.round();
  tail.remove('app-1.log');
  await faults.round();
  expect(await faults.round()).toEqual([]);
  tail.remove('app-2.log');
  await faults.round();
  expect(await faults.round()).toMatchObject([{ kind: 'gone', path: tail.path('app-*.log') }]);
});

test('a log that is gone when the agent starts is gone, too', async () => {
  const tail = createTail({ paths: ['app.log'] });
  const faults = watchFaults(tail, ['app.log']);
  await faults.round();
  expect(await faults.round()).toMatchObject([{ kind: 'gone', path: tail.path('app.log') }]);
});

test('one of two logs that was never there is not gone while the other one is there', async () => {
  const tail = createTail({ paths: ['app.log', 'current'] });
  const faults = watchFaults(tail, ['app.log', 'current']);
  tail.create('app.log', 'a\n');
  await faults.round();
  expect(await faults.round()).toEqual([]);
});

test('the agent finds it in the logs of its configuration, and after a reload in those of the new one', async () => {
  const directory = newFolder();
  const path = (name: string) => join(directory, name);
  const configured = async (log: string) => {
    const text = `stateDirectory: ${path('state')}\nadmin: ~\nservices: {history: {logs: {paths: ['${path(log)}']}}}\n`;
    writeFileSync(path('agent.yaml'), text);
    writeFileSync(path(log), '{"level":"info"}\n');
    const { config } = await loadConfig({ file: path('agent.yaml'), env: {}, cwd: directory });
    return config as AgentConfig;
  };
  const log: Log = { write() {}, named: () => log };
  const clock = manualClock();
  const [first, second] = [await configured('first.log'), await configured('second.log')];
  const registry = createRegistry({ ...registrySettings(first), durable: createDurableStore() }, { clock });
  const pipeline = createLogPipeline({
    registry,
    self: createSelfMetrics(),
    clock,
    logsSection: { assign() {} } as never,
    processEvents: { logged() {}, started() {} },
    opened() {},
    drops: registry.drops,
    log,
  });
  await pipeline.start(first);
  onTestFinished(() => pipeline.stop());
  /** Lets time pass until the log, which is there at first, is reported as gone. */
  const goes = async (name: string) => {
    await until('the log is followed', () => {
      clock.advance(1_000);
      return pipeline.files().some((file) => file.path === path(name));
    });
    rmSync(path(name));
    await until(`${name} is gone`, () => {
      clock.advance(1_000);
      return pipeline.faults().some((fault) => fault.kind === 'gone' && fault.path === path(name));
    });
    expect(pipeline.faults()).toMatchObject([{ kind: 'gone', path: path(name), services: ['history'] }]);
  };
  await goes('first.log');
  const swapped = pipeline.prepare(second)();
  await until('the reload is over', () => {
    clock.advance(1_000);
    return pipeline.switched === undefined;
  });
  await swapped;
  await goes('second.log');
});
