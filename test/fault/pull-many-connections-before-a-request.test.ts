import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { nextTurn } from '../../src/core/slices.ts';
import { get, openListener } from '../integration/pull/scraper.ts';
import { atTestEnd } from '../test-end.ts';

test.each([1, 5])(
  'a request behind 300 connections waits for few slices of work, with %i pieces of it',
  async (pieces) => {
    const { listener } = await openListener();
    const port = Number(listener.address.split(':')[1]);
    // The kernel accepts them at once, in this order; the process accepts one in a turn of its event loop.
    const hostile = Array.from({ length: 300 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    atTestEnd(() => hostile.map((socket) => socket.destroy()));
    const asked = get(listener.address, '/a');
    let isAnswered = false;
    let slices = 0;
    const work = async () => {
      while (!isAnswered) {
        slices++;
        await nextTurn();
      }
    };
    const working = Promise.all(Array.from({ length: pieces }, work));
    expect((await asked).status).toBe(200);
    isAnswered = true;
    await working;
    expect(slices).toBeLessThan(150);
  },
);
