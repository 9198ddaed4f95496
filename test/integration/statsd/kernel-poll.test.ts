import { createSocket } from 'node:dgram';
import { expect, it, onTestFinished } from 'vitest';
import { bindUdp } from '../../../src/sources/statsd/listen/udp.ts';
import { manualClock } from '../../clock.ts';
import { until } from '../../until.ts';

it('reads the kernel’s counter each second only while datagrams come', async () => {
  const clock = manualClock();
  const waits: number[] = [];
  const noted = {
    ...clock,
    after(delayMs: number, call: () => void) {
      waits.push(delayMs);
      return clock.after(delayMs, call);
    },
  };
  let taken = 0;
  const bound = await bindUdp(
    { name: 'statsd', address: '127.0.0.1:0', receiveBufferBytes: 65_536 },
    {
      senders: { allows: () => true } as never,
      log: { write() {} } as never,
      clock: noted,
      take: () => void taken++,
      onForbiddenSender() {},
      onKernelDrops() {},
    },
  );
  onTestFinished(() => bound.close());
  const sender = createSocket('udp4');
  onTestFinished(() => void sender.close());
  expect(waits.splice(0)).toEqual([15_000]);
  sender.send('a:1|c', Number(bound.address.split(':').at(-1)), '127.0.0.1');
  await until('the datagram is taken', () => taken === 1);
  expect(waits.splice(0)).toEqual([1_000]);
  // There is one more poll after the poll that follows the last datagram, because drops may come after it.
  clock.advance(1_000);
  expect(waits.splice(0)).toEqual([1_000]);
  clock.advance(1_000);
  expect(waits.splice(0)).toEqual([15_000]);
  expect(clock.waiting).toBe(1);
});
