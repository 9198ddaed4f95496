import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { digestOf, unreadDigest } from '../../src/agent/config/environment.ts';
import { watchConfiguration } from '../../src/agent/reload.ts';
import { systemClock } from '../../src/core/clock.ts';
import { manualClock } from '../clock.ts';
import { anyMoment } from '../until.ts';

let place: string;
let stop = () => {};
beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), 'svc-agent-bursts-')));
});
afterEach(() => {
  stop();
  rmSync(place, { recursive: true, force: true });
});

/** Reads the file at each change and then watches what it read, as a reload does. */
function follow(file: string): { seen: string } {
  const reader = { seen: '' };
  const load = () => {
    stop();
    let digest = unreadDigest;
    try {
      reader.seen = readFileSync(file, 'utf8');
      digest = digestOf(Buffer.from(reader.seen));
    } catch {
      // The file is being created again.
    }
    stop = watchConfiguration({ [file]: digest }, systemClock, load);
  };
  load();
  return reader;
}

/** Contents of the same size, so that only times and digests distinguish them. */
const contentOf = (n: number) => `change: ${String(n).padStart(6, '0')}\n`;

/** A volume as the kubelet mounts it: the file is a link to `..data/agent.yaml`, and `..data` one to a directory. */
function publish(n: number): void {
  const directory = `..2026_${n}`;
  mkdirSync(join(place, directory));
  writeFileSync(join(place, directory, 'agent.yaml'), contentOf(n));
  symlinkSync(directory, join(place, '..data_tmp'));
  renameSync(join(place, '..data_tmp'), join(place, '..data'));
  rmSync(join(place, `..2026_${n - 1}`), { recursive: true, force: true });
}

const styles: Record<string, (file: string, n: number) => void> = {
  'written in place': (file, n) => writeFileSync(file, contentOf(n)),
  'renamed over': (file, n) => {
    writeFileSync(`${file}.tmp`, contentOf(n));
    renameSync(`${file}.tmp`, file);
  },
  'removed and made again': (file, n) => {
    rmSync(file, { force: true });
    writeFileSync(file, contentOf(n));
  },
  'a mounted volume': (_file, n) => publish(n),
};

const bursts = 10;
const changesPerBurst = 25;

test.each(Object.entries(styles))(
  '%s: the last of many quick changes is always seen',
  async (style, change) => {
    const file = join(place, 'agent.yaml');
    if (style === 'a mounted volume') {
      publish(0);
      symlinkSync('..data/agent.yaml', file);
    } else writeFileSync(file, contentOf(0));
    const reader = follow(file);
    for (let burst = 0, n = 0; burst < bursts; burst++) {
      for (let left = changesPerBurst; left > 0; left--) {
        change(file, ++n);
        // Some changes happen while a comparison reads, others in the same tick of the file system's clock.
        if (left % 5 === 0) await anyMoment(Math.random, 20 * (burst + 1));
      }
      await vi.waitFor(() => expect(reader.seen).toBe(contentOf(n)), { timeout: 30_000, interval: 10 });
    }
  },
);

test('a change in the same tick of the file system’s clock as the comparison before it is seen', async () => {
  const file = join(place, 'agent.yaml');
  const clock = manualClock();
  writeFileSync(file, contentOf(0));
  let seen = '';
  stop = watchConfiguration({ [file]: digestOf(Buffer.from(contentOf(0))) }, clock, () => {
    seen = readFileSync(file, 'utf8');
  });
  for (let n = 1; n <= 40; n += 2) {
    writeFileSync(file, contentOf(n));
    clock.advance(10_000);
    expect(seen).toBe(contentOf(n));
    writeFileSync(file, contentOf(n + 1));
    clock.advance(10_000);
    expect(seen).toBe(contentOf(n + 1));
  }
});
