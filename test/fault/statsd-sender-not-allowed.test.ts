import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { openStatsd, sendDatagrams } from '../statsd.ts';
import { until } from '../until.ts';

// Only on Linux all of 127.0.0.0/8 is loopback.
describe.runIf(process.platform === 'linux')('a sender that is not on the list', () => {
  test('its datagrams are counted and not read', async () => {
    const open = await openStatsd({ listen: '127.0.0.1:0', senders: ['127.0.0.2/31'] }, systemClock);
    const address = open.statsd.status().addresses.listen!;
    await sendDatagrams(address, ['a:1|c'], '127.0.0.1');
    await sendDatagrams(address, ['a:10|c'], '127.0.0.2');
    await sendDatagrams(address, ['a:100|c'], '127.0.0.3');
    await sendDatagrams(address, ['a:1000|c'], '127.0.0.4');
    await until('two are refused', () => open.drops['statsd/sender_not_allowed'] === 2);
    await until('two are read', () => open.statsd.status().lines === 2);
    expect(open.shown()).toEqual({ 'counter a': 110 });
    expect(open.statsd.status().examples).toEqual({ sender_not_allowed: '127.0.0.1' });
  });

  test('its connection is closed and counted', async () => {
    const open = await openStatsd({ tcp: '127.0.0.1:0', senders: ['127.0.0.2'] }, systemClock);
    const port = Number(open.statsd.status().addresses.tcp!.split(':').at(-1));
    const stranger = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.1' });
    stranger.on('error', () => {});
    stranger.write('a:1|c\n');
    await once(stranger, 'close');
    const known = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
    known.end('a:2|c\n');
    await until('the known one is heard', () => open.shown()['counter a'] === 2);
    expect(open.drops).toEqual({ 'statsd/sender_not_allowed': 1 });
  });
});
