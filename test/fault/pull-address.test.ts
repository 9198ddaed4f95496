import { expect, test } from 'vitest';
import { createListener, createListeners } from '../../src/reporters/listen/listener.ts';
import { listenerDeps } from '../integration/pull/scraper.ts';
import { freePort } from '../ports.ts';

test('an address in use is an error that names it and keeps its cause', async () => {
  const deps = listenerDeps();
  const first = await createListener({ name: 'metrics', address: '127.0.0.1:0' }, deps);
  const again = createListener({ name: 'admin', address: first.address }, deps);
  await expect(again).rejects.toMatchObject({
    code: 'address_in_use',
    message: `admin: address already in use, got "${first.address}"; use another port, or stop the program that uses this one`,
    cause: { code: 'EADDRINUSE' },
  });
  await first.close();
});

test('an address of another machine, or none at all', async () => {
  const deps = listenerDeps();
  const foreign = createListener({ name: 'admin', address: '192.0.2.1:0' }, deps);
  await expect(foreign).rejects.toMatchObject({ code: 'listen_failed', cause: { code: 'EADDRNOTAVAIL' } });
  const none = createListener({ name: 'admin', address: 'nonsense' }, deps);
  await expect(none).rejects.toMatchObject({ code: 'config_invalid' });
});

test('a listener that could not be bound can be tried again', async () => {
  const deps = listenerDeps();
  const listeners = createListeners((options) => createListener(options, deps));
  const first = await createListener({ name: 'metrics', address: '127.0.0.1:0' }, deps);
  const wanted = { name: 'admin', address: first.address };
  await expect(listeners.hold(wanted)).rejects.toMatchObject({ code: 'address_in_use' });
  await first.close();
  const second = await listeners.hold(wanted);
  expect(second.address).toBe(first.address);
  await second.close();
});

test('an address that covers one of the agent’s own is no other program’s', async () => {
  const deps = listenerDeps();
  const listeners = createListeners((options) => createListener(options, deps));
  const port = await freePort();
  const first = await listeners.hold({ name: 'metrics', address: `127.0.0.1:${port}` });
  const wider = listeners.hold({ name: 'metrics', key: 'metrics.listenAddress', address: `0.0.0.0:${port}` });
  await expect(wider).rejects.toMatchObject({
    code: 'address_in_use',
    message: `metrics.listenAddress: a reload cannot change from 127.0.0.1:${port}, on which the agent itself listens, got "0.0.0.0:${port}"; restart the agent, or use another port`,
    cause: { code: 'EADDRINUSE' },
  });
  await first.close();
});
