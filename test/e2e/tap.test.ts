import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { entriesIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { serving } from '../serving.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { mainFile, start } from './process.ts';

// `svc-agent tap` beside a log and a page that change.

const place = newFolder(afterAll);

interface Shown {
  role: string;
  source: string;
  counted: string;
  series: Record<string, string>;
  line?: string;
}

test('each line is shown with what it counts as, and the page with what changed', async () => {
  let calls = 3;
  const port = await serving((_, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4');
    response.end(`# TYPE svc_persistence_requests counter\nsvc_persistence_requests ${calls}\n`);
  });
  const log = join(place, 'frontend.log');
  const entry = (msg: string) => `{"level":"warn","ts":"2026-01-01T00:00:00Z","msg":"${msg}"}\n`;
  writeFileSync(log, entry('before'));
  const file = join(place, 'agent.yaml');
  writeFileSync(
    file,
    JSON.stringify({
      services: {
        frontend: {
          logs: { paths: [log] },
          scrape: { url: `http://127.0.0.1:${port}/metrics`, interval: '1s', timeout: '1s' },
        },
      },
      admin: null,
    }),
  );
  const tap = start(process.execPath, [mainFile, 'tap', '-c', file, '--json']);
  atTestEnd(() => tap.end());
  const shown = () => entriesIn<Shown>(tap.output());
  await until('the first page', () => shown().some(({ counted }) => counted.startsWith('page: ')));
  appendFileSync(log, `${entry('after')}{"bro\n`);
  const lines = await until('both lines', () => {
    const found = shown().filter(({ line }) => line !== undefined);
    return found.length >= 2 && found;
  });
  expect(lines.map(({ role, source, counted, line }) => [role, source, counted, line])).toEqual([
    ['frontend', log, 'entry', entry('after').trimEnd()],
    ['frontend', log, 'dropped: invalid_json', '{"bro'],
  ]);
  expect(lines[0]!.series).toMatchObject({
    'svc_log_entries_total{level="warn",svc_service="frontend"}': '+1',
    'svc_log_bytes_total{svc_service="frontend"}': `+${entry('after').length}`,
  });
  await tap.end();

  const matched = start(process.execPath, [mainFile, 'tap', '-c', file, '--match', 'persistence_requests']);
  atTestEnd(() => matched.end());
  await until('the value of the page', () =>
    matched.output().includes('svc_persistence_requests{svc_service="frontend"} +3'),
  );
  calls = 5;
  await until('its increase', () =>
    matched.output().includes('svc_persistence_requests{svc_service="frontend"} +2'),
  );
});

test('a line is shown once, and the page with what of it is lost', async () => {
  const port = await serving((_, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4');
    response.end('# TYPE good counter\ngood{run_id="a"} 1\nnot a line\n');
  });
  const url = `http://127.0.0.1:${port}/metrics`;
  const secretUrl = `${url}?access_token=s3cret`;
  const log = join(place, 'history.log');
  writeFileSync(log, '');
  const rules = [{ name: 'slow_shard', type: 'counter', match: { msg: 'slow' }, labels: { shard: 'shard' } }];
  const file = join(place, 'once.yaml');
  const scrape = { url: secretUrl, interval: '1s', timeout: '1s' };
  writeFileSync(
    file,
    JSON.stringify({ services: { history: { logs: { paths: [log], rules }, scrape } }, admin: null }),
  );
  const open = (...args: string[]) => {
    const tap = start(process.execPath, [mainFile, 'tap', '-c', file, '--json', ...args]);
    atTestEnd(() => tap.end());
    return () => entriesIn<Shown>(tap.output());
  };
  const [shown, matched] = [open(), open('--match', 'slow_shard')];
  const pages = () => shown().filter(({ counted }) => counted.startsWith('page: '));
  const first = await until('the first page', () => pages()[0]);
  expect(first.source).toBe(`${url}?access_token=…`);
  expect(Object.keys(first.series)).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^svc_agent_dropped_total\{.*reason="forbidden_tag"/),
      expect.stringMatching(/^svc_agent_dropped_total\{.*reason="invalid_line"/),
    ]),
  );
  // It is not known when the other command has begun to follow the log.
  let shard = 0;
  await until('a line is shown', () => {
    appendFileSync(log, `{"level":"info","ts":"2026-01-01T00:00:00Z","msg":"slow","shard":"${++shard}"}\n`);
    return matched().length > 0;
  });
  const countOf = ({ series }: Shown) => Object.keys(series).filter((text) => text.includes('slow_shard'));
  const isLast = (text: string) => text.includes(`shard="${shard}"`);
  await until('the last line is shown', () => matched().flatMap(countOf).some(isLast));
  const before = pages().length;
  await until('two pages after it', () => pages().length >= before + 2);
  expect(new Set(matched().map(({ counted }) => counted))).toEqual(new Set(['entry']));
  const counts = matched().flatMap(countOf);
  expect(counts).toEqual([...new Set(counts)]);
});

test('--for ends it by itself with 0', async () => {
  const file = join(place, 'quiet.yaml');
  writeFileSync(
    file,
    JSON.stringify({
      services: { frontend: { logs: { paths: [join(place, 'none*.log')] } } },
      admin: null,
    }),
  );
  const tap = start(process.execPath, [mainFile, 'tap', '-c', file, '--for', '100ms']);
  atTestEnd(() => tap.end());
  expect(await tap.ended).toBe(0);
});

test('a reader that ends, such as head, ends the command', async () => {
  const log = join(newFolder(), 'history.log');
  writeFileSync(log, '');
  const file = join(newFolder(), 'head.yaml');
  writeFileSync(file, JSON.stringify({ services: { history: { logs: { paths: [log] } } }, admin: null }));
  const tap = start(process.execPath, [mainFile, 'tap', '-c', file]);
  atTestEnd(() => tap.end());
  const append = () => appendFileSync(log, '{"level":"info","msg":"x"}\n');
  await until('a line is shown', () => {
    append();
    return tap.output() !== '';
  });
  tap.child.stdout!.destroy();
  await until('it has ended', () => {
    append();
    return tap.child.exitCode !== null;
  });
  expect(await tap.ended).toBe(0);
});
