import { utimesSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

const namings: [string, (rotation: number) => string][] = [
  ['upwards', (rotation) => `app.log.${98 + rotation}`],
  ['by date', (rotation) => `app.log-2026010${rotation}`],
];

test.each(
  namings.flatMap(([how, name]) => ['app.log', 'app.log*'].map((pattern) => [how, pattern, name] as const)),
)(
  'five rotations between two scans, names counting %s (%s): nothing lost, in order',
  async (_, pattern, nameOf) => {
    const tail = createTail({ paths: [pattern] });
    let line = 0;
    // Each file is a second older than the next, so that no two have the same time.
    const write = (secondsAgo: number) => {
      tail.append('app.log', numbered(line, 10).text);
      line += 10;
      const time = Date.now() / 1000 - secondsAgo;
      utimesSync(tail.path('app.log'), time, time);
    };
    tail.create('app.log', '');
    write(10);
    await tail.scan();
    for (let rotation = 1; rotation <= 5; rotation++) {
      write(10 - rotation);
      tail.rename('app.log', nameOf(rotation));
      tail.create('app.log', '');
    }
    write(0);
    expect(await tail.scanned()).toEqual(numbered(0, line).lines);
  },
);
