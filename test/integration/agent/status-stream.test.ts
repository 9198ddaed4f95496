import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { StatusFacts, StatusReport } from '../../../src/agent/report.ts';
import { systemClock } from '../../../src/core/clock.ts';
import type { Clock } from '../../../src/core/ports.ts';
import { manualClock } from '../../clock.ts';
import { type ServedPage, servePage } from '../../status-page.ts';
import { probeStatusOf, statusReportOf } from '../../status-report.ts';
import { atTestEnd } from '../../test-end.ts';

async function serve(facts: () => Partial<StatusFacts>, clock: Clock = systemClock): Promise<ServedPage> {
  const report = (): StatusReport =>
    statusReportOf({ now: new Date(clock.nowMs()).toISOString(), ...facts() });
  const served = await servePage(report, clock);
  atTestEnd(served.close);
  return served;
}

interface StreamEvent {
  id: string;
  data: Record<string, unknown>;
}

/** One connected browser: the events that it gets, and a wait for the next event. */
async function listen({ url }: ServedPage, headers: Record<string, string> = {}) {
  const request = get(`${url}/api/events`, { headers, agent: false });
  atTestEnd(() => request.destroy());
  request.on('error', () => {});
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const events: StreamEvent[] = [];
  let rest = '';
  let bytes = 0;
  let heard = () => {};
  response.setEncoding('utf8').on('data', (text: string) => {
    bytes += text.length;
    const parts = (rest + text).split('\n\n');
    rest = parts.pop()!;
    for (const part of parts) {
      const [, id, data] = /^id: (\S+)\ndata: (.*)$/s.exec(part) ?? [];
      if (id) events.push({ id, data: JSON.parse(data!) as Record<string, unknown> });
    }
    heard();
  });
  return {
    status: response.statusCode,
    type: response.headers['content-type'],
    events,
    bytes: () => bytes,
    ended: once(response, 'close').catch(() => {}),
    close: () => request.destroy(),
    async until(count: number) {
      while (events.length < count) await new Promise<void>((resolve) => (heard = resolve));
      return events[count - 1]!;
    },
  };
}

test('everything first, then what changed, and what changed alone', async () => {
  let msg = 'ok';
  const served = await serve(() => ({
    probes: [probeStatusOf('health/a', { msg }), probeStatusOf('health/b')],
  }));
  const client = await listen(served);
  expect(client.type).toMatch(/^text\/event-stream/);
  const first = await client.until(1);
  expect(first.data).toMatchObject({
    verdict: { level: expect.any(String) },
    probes: ['health/a', 'health/b'],
    'probes:health/a': { last: { msg: 'ok' } },
    tick: null,
  });
  msg = 'slow';
  const second = await client.until(2);
  expect(Object.keys(second.data).sort()).toEqual(['now', 'probes:health/a']);
});

test('a client that comes back gets what it missed; one of another life of the agent gets everything', async () => {
  let msg = 'ok';
  const served = await serve(() => ({ probes: [probeStatusOf('health/a', { msg })] }));
  const stays = await listen(served);
  const leaves = await listen(served);
  const { id } = await leaves.until(1);
  leaves.close();
  msg = 'slow';
  await stays.until(2);
  const back = await listen(served, { 'last-event-id': id });
  expect(Object.keys((await back.until(1)).data).sort()).toEqual(['now', 'probes:health/a']);
  for (const foreign of ['00000000.7', 'x', `${id}9999999999999999`, '']) {
    const other = await listen(served, { 'last-event-id': foreign });
    expect(Object.keys((await other.until(1)).data)).toContain('version');
    other.close();
  }
});

test('of 200 clients 16 are served, and the others are told to come later; the listener answers all the time', async () => {
  const served = await serve(() => ({}));
  const clients = await Promise.all(Array.from({ length: 40 }, () => listen(served)));
  const refused = clients.filter(({ status }) => status === 503);
  expect(clients.filter(({ status }) => status === 200)).toHaveLength(16);
  expect(refused).toHaveLength(24);
  for (let i = 0; i < 4; i++) {
    const more = await Promise.all(Array.from({ length: 40 }, () => listen(served)));
    expect(more.every(({ status }) => status === 503)).toBe(true);
    for (const one of more) one.close();
  }
  expect((await fetch(`${served.url}/api/status`)).status).toBe(200);
  for (const one of clients) one.close();
  await expect.poll(async () => (await listen(served)).status).toBe(200);
});

test('a client that never reads is dropped, and what it did not read is not piled up', async () => {
  const clock = manualClock();
  let fill = 0;
  // These are 2 MB that are different each time: more than the kernel buffers.
  const served = await serve(() => ({ conflicts: [`${fill++} ${'x'.repeat(2_000_000)}`] }), clock);
  const socket = connect(Number(new URL(served.url).port), '127.0.0.1');
  atTestEnd(() => socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.pause();
  socket.write('GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await expect.poll(() => served.live.streams).toBe(1);
  for (let second = 0; second < 120 && served.live.streams > 0; second++) {
    clock.advance(1_000);
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
  expect(served.live.streams).toBe(0);
  expect(served.drops).toEqual(['slow_reader']);
  // Reports are made only for clients that read them: a handful fill the kernel's buffers.
  expect(fill).toBeLessThan(20);
});

test('an hour with a browser: streams end every ten minutes, and nothing grows', async () => {
  const clock = manualClock();
  let n = 0;
  const served = await serve(
    () => ({ conflicts: [`conflict ${n++}`], probes: [probeStatusOf('health/a')] }),
    clock,
  );
  served.history.start();
  let id = '';
  let client = await listen(served);
  let connections = 1;
  let isOpen = true;
  const watch = (one: typeof client) => {
    isOpen = true;
    void one.ended.then(() => {
      isOpen = false;
    });
  };
  watch(client);
  const sizes: number[] = [];
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const tick = () => new Promise<void>((resolve) => void setImmediate(resolve));
  for (let second = 0; second < 3_600; second++) {
    clock.advance(1_000);
    await tick();
    await tick();
    if (!isOpen) {
      client = await listen(served, { 'last-event-id': id });
      connections++;
      watch(client);
    }
    id = client.events.at(-1)?.id ?? id;
    client.events.splice(0, client.events.length - 1);
    if (second % 600 === 599) {
      collect();
      sizes.push(process.memoryUsage().heapUsed);
    }
  }
  expect(connections).toBeGreaterThan(4);
  expect(connections).toBeLessThan(9);
  expect(served.live.streams).toBeLessThanOrEqual(1);
  expect(served.drops).toEqual([]);
  expect(sizes.at(-1)! - sizes[0]!).toBeLessThan(30 * 2 ** 20);
});

test('nothing is kept, and nothing is asked for, while nobody looks', async () => {
  const clock = manualClock();
  let reports = 0;
  const served = await serve(() => {
    reports++;
    return {};
  }, clock);
  const client = await listen(served);
  await client.until(1);
  client.close();
  await expect
    .poll(async () => {
      clock.advance(1_000);
      return clock.waiting;
    })
    .toBe(0);
  const before = reports;
  clock.advance(600_000);
  expect(reports).toBe(before);
});

test('HEAD opens no stream, another host gets nothing, and a copy of the history is one of four', async () => {
  const served = await serve(() => ({}));
  expect((await fetch(`${served.url}/api/events`, { method: 'HEAD' })).status).toBe(200);
  expect(served.live.streams).toBe(0);
  const statusOf = (path: string, host: string) =>
    new Promise<number | undefined>((resolve) => {
      const request = get(`${served.url}${path}`, { headers: { host } }, ({ statusCode }) => {
        resolve(statusCode);
        request.destroy();
      });
    });
  for (const path of [
    '/',
    '/page.js',
    '/api/events',
    '/api/history',
    '/api/status',
    '/runbooks/SvcStoreDown.md',
  ])
    expect(await statusOf(path, 'evil.example')).toBe(403);
  for (const path of [
    '/runbooks/../package.json',
    '/runbooks/%2e%2e/package.json',
    '/runbooks/a/b.md',
    '/runbooks/',
  ])
    expect(await statusOf(path, 'localhost')).toBe(404);
  const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(`${served.url}/api/history`)));
  for (const answer of answers) {
    expect([200, 503]).toContain(answer.status);
    await answer.arrayBuffer();
  }
  expect((await fetch(`${served.url}/api/history`)).status).toBe(200);
});
