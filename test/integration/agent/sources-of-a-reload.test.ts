import { createSocket } from 'node:dgram';
import { expect, onTestFinished, test } from 'vitest';
import { manualClock } from '../../clock.ts';
import { freePort } from '../../ports.ts';
import { showAll } from '../../registry.ts';
import { configOf, openRoles } from '../../role-pipeline.ts';
import { openTarget } from '../../scrape.ts';
import { servingBare } from '../../serving.ts';
import { until } from '../../until.ts';

test('a reload keeps the sources of a role that did not change, and opens those of one that did anew', async () => {
  const { roles } = openRoles(manualClock());
  onTestFinished(() => roles.stop());
  const services = (prefix: string, more = {}) =>
    configOf({
      frontend: { statsd: { listen: '127.0.0.1:0' } },
      history: { statsd: { listen: '127.0.0.1:0', prefix } },
      ...more,
    });
  const running = () => new Map([...roles.all()].map((sources) => [sources.service, sources]));
  await roles.configure(await services('one'));
  const before = running();
  expect([...before.keys()]).toEqual(['frontend', 'history']);
  await roles.configure(await services('one'));
  expect(running()).toEqual(before);
  await roles.configure(await services('two'));
  const after = running();
  expect(after.get('frontend')).toBe(before.get('frontend'));
  expect(after.get('history')).not.toBe(before.get('history'));
  await roles.configure(await configOf({ frontend: {} }));
  expect([...running().keys()]).toEqual([]);
});

test('the totals of datagrams continue while only the page, or the address of the reporter, changes', async () => {
  const { registry, roles } = openRoles(manualClock());
  const target = await openTarget();
  target.page('x 1\n');
  const socket = createSocket('udp4');
  onTestFinished(async () => {
    socket.close();
    await roles.stop();
  });
  const listen = `127.0.0.1:${await freePort()}`;
  const send = (line: string) => socket.send(line, Number(listen.split(':')[1]), '127.0.0.1');
  const total = () => showAll(registry)['sent{svc_service="frontend"}'];
  const configure = async (frontend: object, pullmetrics: object) =>
    roles.configure(
      await configOf(
        JSON.stringify({
          services: { frontend: { statsd: listen, ...frontend } },
          metrics: { pullmetrics: { listenAddress: '127.0.0.1:0', ...pullmetrics } },
        }),
      ),
    );

  await configure({ scrape: target.url }, {});
  send('sent:7|c');
  await until('the first is counted', () => total() === 7);
  await configure({ scrape: { url: target.url, interval: '5s' } }, {});
  expect(total()).toBe(7);
  await configure({}, {});
  expect([total(), roles.isDown('frontend')]).toEqual([7, undefined]);
  await configure({}, { listenAddress: '127.0.0.2:0', openMetrics: true });
  send('sent:3|c');
  await until('the next is counted, too', () => total() === 10);
  // The buckets are part of what datagrams become.
  await configure({}, { defaultHistogramBuckets: [1, 2] });
  expect(total()).toBeUndefined();
});

test('a reload widens the address of datagrams to every address of the machine', async () => {
  const { roles } = openRoles(manualClock());
  onTestFinished(() => roles.stop());
  const port = await freePort();
  const addresses = () => [...roles.all()].map(({ statsd }) => statsd!.status().addresses.listen);
  for (const host of ['127.0.0.1', '0.0.0.0', '127.0.0.1']) {
    await roles.configure(await configOf({ frontend: { statsd: `${host}:${port}` } }));
    expect(addresses()).toEqual([`${host}:${port}`]);
  }
});

test('a further address on which nothing can listen changes nothing: the datagrams are received on', async () => {
  const { registry, roles } = openRoles(manualClock());
  const socket = createSocket('udp4');
  const taken = await servingBare();
  onTestFinished(async () => {
    socket.close();
    await roles.stop();
  });
  const port = await freePort();
  const listen = `127.0.0.1:${port}`;
  await roles.configure(await configOf({ frontend: { statsd: { listen } } }));
  const inUse = `127.0.0.1:${taken}`;
  for (const more of [{ tcp: inUse }, { unix: '/dev/null' }]) {
    const refused = roles.prepare(await configOf({ frontend: { statsd: { listen, ...more } } }));
    await expect(refused).rejects.toMatchObject({ code: 'address_in_use' });
  }
  socket.send('sent:7|c', port, '127.0.0.1');
  await until('it is counted', () => showAll(registry)['sent{svc_service="frontend"}'] === 7);

  const free = `127.0.0.1:${await freePort()}`;
  await roles.configure(await configOf({ frontend: { statsd: { listen, tcp: free } } }));
  expect([...roles.all()].map(({ statsd }) => statsd!.status().addresses)).toEqual([{ listen, tcp: free }]);
});

test('only selected roles have sources, and a reporter without a deadline does not have their pages fetched', async () => {
  const target = await openTarget();
  target.page('x 1\n');
  const clock = manualClock();
  const { roles } = openRoles(clock);
  onTestFinished(async () => {
    await roles.stop();
  });
  const services = { frontend: { scrape: target.url }, history: { statsd: '127.0.0.1:0' } };
  await roles.configure(await configOf(JSON.stringify({ roles: ['frontend'], services })));
  expect([...roles.all()].map(({ service }) => service)).toEqual(['frontend']);
  await until('the first page is there', () => roles.isDown('frontend') === false);
  expect(roles.isDown('history')).toBeUndefined();
  clock.advance(2000);
  await roles.refresh({ takes: () => true });
  await roles.refresh({
    takes: ({ service }) => service === 'history',
    deadlineMs: clock.monotonicMs() + 1000,
  });
  expect(target.requests).toHaveLength(1);
  await roles.refresh({ takes: () => true, deadlineMs: clock.monotonicMs() + 1000 });
  expect(target.requests).toHaveLength(2);
});
