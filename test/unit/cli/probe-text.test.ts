import { expect, test } from 'vitest';
import { bar, plainScreen, progressLine, screenOf } from '../../../src/agent/cli/io.ts';
import { phasesText } from '../../../src/agent/cli/probe.ts';
import type { Probed } from '../../../src/probes/runner/runner.ts';

const probed = (name: string, ok: boolean, durationMs: number, phasesMs?: Record<string, number>) =>
  ({ row: { name, kind: name.split('/')[0] }, result: { ok, durationMs, phasesMs } }) as unknown as Probed;

test('the phases of each probe are shown: of a store the login and the queries', () => {
  const text = phasesText(
    [
      probed('health/frontend', true, 4, { resolve: 0.04, connect: 1.25, first_byte: 2, body: 0.5 }),
      probed('store/main', true, 60, { connect: 1, tls: 8, first_byte: 11, queries: 40, round_trip: 0.3 }),
      probed('store/other', false, 5000, { connect: 1, tls: 4999 }),
      probed('archive/history', true, 3),
    ],
    plainScreen,
  );
  expect(text.split('\n')).toEqual([
    '',
    'PHASES           ms',
    'health/frontend  resolve 0.0, connect 1.3, first byte 2.0, body 0.5',
    'store/main       connect 1.0, tls 8.0, login 11, queries 40, round trip 0.3',
    'store/other      connect 1.0, tls 4999',
    '',
  ]);
  expect(phasesText([probed('archive/history', true, 3)], plainScreen)).toBe('');
});

test.each([
  [0, '..........'],
  [0.54, '#####.....'],
  [1, '##########'],
  [7, '##########'],
])('a bar at %d', (share, shown) => {
  expect(bar(share, 10, plainScreen)).toBe(shown);
});

test('a line of progress is cut to the terminal, and is nothing in a pipe', () => {
  const shownOn = (screen: typeof plainScreen) => {
    const written: string[] = [];
    const line = progressLine(screen, (text) => written.push(text));
    line.show('waiting for everything');
    line.clear();
    return written;
  };
  const screen = screenOf({ isTTY: true, columns: 10 }, { TERM: 'xterm', LANG: 'C' });
  expect(shownOn(screen)).toEqual(['\r\u001b[Kwaiting ~', '\r\u001b[K']);
  expect(shownOn(plainScreen)).toEqual([]);
});
