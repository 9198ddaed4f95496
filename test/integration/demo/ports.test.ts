import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { freePorts, usualPorts } from '../../../src/agent/cli/demo/config.ts';
import { freePort } from '../../ports.ts';

const none = { ...usualPorts, health: 0, pages: 0, rpc: 0 };

test('the store takes the port that is wanted, but not beside another demo, whose store may refuse connections', async () => {
  const [control, store] = [await freePort(), await freePort()];
  expect((await freePorts({ ...none, control, store }, 'service')).ports).toMatchObject({ control, store });
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(control, '127.0.0.1', resolve));
  const { ports, taken } = await freePorts({ ...none, control, store }, 'service');
  await new Promise((resolve) => other.close(resolve));
  expect(taken).toHaveLength(1);
  expect(ports.store).toBeGreaterThan(0);
  expect(ports.store).not.toBe(store);
});
