import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { openStatsd, sendDatagrams } from '../statsd.ts';
import { until } from '../until.ts';

test('a second agent on the port is told so, and the first goes on undisturbed', async () => {
  const first = await openStatsd({ listen: '127.0.0.1:0' }, systemClock);
  const listen = first.statsd.status().addresses.listen!;
  await sendDatagrams(listen, ['a:1|c']);
  await expect(openStatsd({ listen }, systemClock)).rejects.toThrow(
    /^services\.frontend\.statsd\.listen: address already in use, got "127\.0\.0\.1:\d+"; use another port/,
  );
  await sendDatagrams(listen, ['a:1|c']);
  await until('both datagrams are counted', () => first.shown()['counter a'] === 2);

  await first.stop();
  const second = await openStatsd({ listen }, systemClock);
  await sendDatagrams(listen, ['b:1|c']);
  await until('the second one has the port', () => second.shown()['counter b'] === 1);
});
