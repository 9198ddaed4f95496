import { createSocket } from 'node:dgram';
import { createServer, type Server } from 'node:net';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import type { RolePipeline } from '../../../src/agent/role-pipeline.ts';
import { type ManualClock, manualClock } from '../../clock.ts';
import { freePort } from '../../ports.ts';
import { configOf, openRoles } from '../../role-pipeline.ts';
import { until } from '../../until.ts';

/**
 * A role takes over the address of another role for its datagrams; its stream cannot start, because another program took its port
 * after the agent had tried it.
 */
let clock: ManualClock;
let roles: RolePipeline;
let udp: string;
let tcp: string;
let inTheWay: Server;

const names = () => [...roles.all()].map(({ service }) => service);
/** Whether the address of the datagrams is free. */
const isFree = () =>
  new Promise<boolean>((resolve) => {
    const socket = createSocket('udp4');
    socket.once('error', () => resolve(false));
    socket.bind(Number(udp.split(':')[1]), '127.0.0.1', () => socket.close(() => resolve(true)));
  });
const takePort = () =>
  new Promise<void>((resolve) => {
    inTheWay.listen(Number(tcp.split(':')[1]), '127.0.0.1', () => resolve());
  });
const close = () => new Promise((resolve) => inTheWay.close(resolve));

beforeEach(async () => {
  clock = manualClock();
  roles = openRoles(clock).roles;
  [udp, tcp] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  inTheWay = createServer();
  onTestFinished(async () => {
    await roles.stop();
    inTheWay.close();
  });
  await roles.configure(await configOf({ frontend: { statsd: { listen: udp } } }));
  const next = await roles.prepare(await configOf({ history: { statsd: { listen: udp, tcp } } }));
  await takePort();
  await next.swap();
  expect(names()).toEqual([]);
});

test('starts as soon as it can', async () => {
  await close();
  clock.advance(2_000);
  await until('it runs', () => names().includes('history'));
  expect(await isFree()).toBe(false);
});

test('does not start while another configuration is prepared, nor after that is swapped in', async () => {
  const next = await roles.prepare(await configOf({ worker: {} }));
  await close();
  clock.advance(2_000);
  await next.swap();
  clock.advance(2_000);
  expect(names()).toEqual([]);
  // After this, a start that was under way has ended.
  await roles.stop();
  expect(await isFree()).toBe(true);
});

test('is tried again after the other configuration is discarded', async () => {
  const next = await roles.prepare(await configOf({ worker: {} }));
  await close();
  await next.discard();
  clock.advance(2_000);
  await until('it runs', () => names().includes('history'));
});

test('a stop while it is tried again waits for that, and leaves nothing open', async () => {
  await close();
  clock.advance(2_000);
  let isStopped = false;
  const stopped = roles.stop().then(() => {
    isStopped = true;
  });
  // A socket is not bound before the next turn of the event loop.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(isStopped).toBe(false);
  await stopped;
  expect([await isFree(), names()]).toEqual([true, []]);
});

test('a stop while it is tried again in vain leaves no timer behind, also if a configuration is discarded after it', async () => {
  clock.advance(2_000);
  await roles.stop();
  expect(clock.waiting).toBe(0);
  const next = await roles.prepare(await configOf({ worker: {} }));
  await next.discard();
  expect(clock.waiting).toBe(0);
});
