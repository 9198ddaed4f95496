import { appendFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'vitest';
import { stringify } from 'yaml';
import type { StatusReport } from '../../src/agent/report.ts';
import { type RunningAgent, startAgent } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
import { listening } from '../ports.ts';
import { until } from '../until.ts';

/**
 * A role has persistence errors. Then its counts stand still, as if it hung: its page stays the same, or its log gets no entry,
 * while its health check is passed. That is no evidence that the errors are over, whether or not the agent is restarted meanwhile.
 */

/** Registers what ends with the test. */
type AtEnd = TestContext['onTestFinished'];
type Mode = 'failing' | 'still' | 'well';

/** More time than any window of the conditions on persistence errors: without news, values would tell that all is well. */
const stillMs = 300_000;
const withinMs = 900_000;

/** A role that counts its calls of the store for each second that has passed, on its page. */
async function startPage(atEnd: AtEnd) {
  let mode: Mode = 'failing';
  let lastMs = Date.now();
  let [requests, errors] = [0, 0];
  const count = () => {
    const seconds = (Date.now() - lastMs) / 1000;
    lastMs = Date.now();
    if (mode === 'still') return;
    requests += 40 * seconds;
    if (mode === 'failing') errors += 20 * seconds;
  };
  const sample = (name: string, value: number) =>
    `# TYPE ${name} counter\n${name}{operation="GetWorkflowExecution"} ${Math.round(value)}\n`;
  const server = createServer(({ url }, response) => {
    count();
    const page = sample('svc_persistence_requests', requests) + sample('svc_persistence_errors', errors);
    response.end(url === '/health' ? '{"ok":true}' : page);
  });
  const url = `http://127.0.0.1:${(await listening(server)).port}`;
  atEnd(() => void server.close());
  const become = (next: Mode) => {
    count();
    mode = next;
  };
  return { role: { health: `${url}/health`, scrape: { url, interval: '5s', timeout: '5s' } }, become };
}

/** A role that logs its calls of the store that fail. */
async function startLog(atEnd: AtEnd, folder: string) {
  let mode: Mode = 'failing';
  const log = join(folder, 'history.log');
  const write = (level: string, msg: string, more = {}) =>
    appendFileSync(log, `${JSON.stringify({ level, ts: new Date().toISOString(), msg, ...more })}\n`);
  const failure = { operation: 'GetWorkflowExecution', error: 'Operation timed out', logger: 'persistence' };
  writeFileSync(log, '');
  const writer = setInterval(() => {
    if (mode === 'still') return;
    write('info', 'worker does work');
    const failures = mode === 'failing' ? 3 : 0;
    for (let n = 0; n < failures; n++) write('error', 'Operation failed with internal error.', failure);
  }, 500);
  atEnd(() => clearInterval(writer));
  const server = createServer((_request, response) => response.end('{"ok":true}'));
  const health = `http://127.0.0.1:${(await listening(server)).port}/health`;
  atEnd(() => void server.close());
  const become = (next: Mode) => {
    mode = next;
  };
  return { role: { health, logs: { paths: [log] } }, become };
}

const statusOf = async (agent: RunningAgent) =>
  (await (await fetch(`http://${agent.address('admin')}/api/status`)).json()) as StatusReport;
/** The samples of `svc_incident` on the agent's page. */
const incidentsOf = async (agent: RunningAgent) =>
  (await (await fetch(`http://${agent.address('metrics')}/metrics`)).text())
    .split('\n')
    .filter((line) => line.startsWith('svc_incident{'));

const failing = 'persistence_errors/history';

test.concurrent.for([
  ['its page stays the same', startPage, false],
  ['its page stays the same, and the agent is killed', startPage, true],
  ['its log is silent', startLog, false],
  ['its log is silent, and the agent is killed', startLog, true],
] as const)('%s', { timeout: 2 * withinMs }, async ([, startRole, isKilled], { expect, onTestFinished }) => {
  const folder = newFolder(onTestFinished);
  const { role, become } = await startRole(onTestFinished, folder);
  const file = join(folder, 'agent.yaml');
  const listener = { listenAddress: '127.0.0.1:0' };
  writeFileSync(
    file,
    stringify({
      stateDirectory: join(folder, 'state'),
      metrics: { pullmetrics: listener },
      admin: listener,
      services: { history: role },
    }),
  );
  let agent = await startAgent(file);
  onTestFinished(() => agent.end('SIGKILL').then(() => {}));
  const sees = (what: string, isWanted: (report: StatusReport) => boolean) =>
    until(
      what,
      async () => {
        const report = await statusOf(agent);
        if (isWanted(report)) return report;
        throw new Error(report.verdict.sentence);
      },
      { everyMs: 1000, withinMs },
    );

  const first = await sees('it has persistence errors', ({ verdict }) => verdict.cause?.id === failing);
  const { since } = first.verdict.cause!;
  await sees('it is in the state', ({ state }) => (state.lastCommitAt ?? '') > first.now);
  become('still');
  const stillSinceMs = Date.now();
  if (isKilled) {
    await agent.end('SIGKILL');
    agent = await startAgent(file);
  }
  let isUnread = false;
  await sees('it stands still for long', ({ verdict: { problems }, incidents }) => {
    const problem = problems.find(({ id }) => id === failing);
    isUnread ||= problem?.unreadSince !== undefined;
    expect([problem?.since, incidents]).toEqual([since, []]);
    return Date.now() - stillSinceMs > stillMs;
  });
  const last = await statusOf(agent);
  expect(last.verdict.sentence).toContain('It is no longer known whether');
  expect(isUnread).toBe(true);
  expect(await incidentsOf(agent)).toEqual([
    expect.stringMatching(/^svc_incident\{.*cause="persistence_errors".*\} 1$/),
  ]);

  const wellMs = Date.now();
  become('well');
  const ended = await sees('it is over', ({ verdict: { level } }) => level === 'ok');
  expect(ended.incidents).toMatchObject([{ id: failing, start: since }]);
  expect(Date.parse(ended.incidents[0]!.end!)).toBeGreaterThanOrEqual(wellMs);
  expect(await incidentsOf(agent)).toEqual([]);
});
