import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { withPrefix } from '../../../src/core/vocabulary-detector.ts';
import { playRole } from '../../played-pages.ts';
import { compare, parse, rawPage, recordedCases, type Sample } from '../../recorded-pages.ts';

/**
 * A service with histograms in place of timers, or with both. The families are those of a real server in this mode: some timers
 * are gone, others are still there and count nothing. The numbers are those of the recorded pages.
 */
const families = new Set(
  readFileSync(new URL('../../fixtures/real-service/histogram-mode-families.txt', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line.includes(' histogram '))
    .map((line) => line.split(' ')[0]!),
);
const histogramOf = (timer: string): string =>
  timer.endsWith('_rollup') ? timer.replace(/_rollup$/, '_ns_rollup') : `${timer}_ns`;
const layout = 'histogram_start="1ms",histogram_end="1000s",histogram_scale="1"';

type Mode = 'timer' | 'histogram' | 'both';

/** A recorded page as the service would have sent it in another mode. */
function pageIn(mode: Mode, page: string, isAtRest = false): string {
  const lines = page.split('\n').flatMap((line) => {
    const [, comment, family] = /^# (HELP|TYPE) (\w+)/.exec(line) ?? [];
    if (comment) {
      if (!families.has(histogramOf(family!))) return [line];
      const second = line.replaceAll(family!, histogramOf(family!));
      return mode !== 'histogram' || families.has(family!) ? [line, second] : [second];
    }
    const [, name = '', ending = '', labels = '', value = ''] =
      /^(\w+?)(_bucket|_sum|_count)\{(.*)\} (\S+)$/.exec(line) ?? [];
    if (!families.has(histogramOf(name))) return [isAtRest ? line.replace(/ \S+$/, ' 0') : line];
    const first = (number: string) => `${name}${ending}{${labels}} ${number}`;
    // Histograms have their own bounds; every second one is enough here.
    const isBound = /le="5/.test(labels);
    const second = (number: string) =>
      isBound ? [] : [`${histogramOf(name)}${ending}{${layout},${labels}} ${number}`];
    const [timers, histograms] = [mode !== 'histogram', mode !== 'timer'].map((is) =>
      is && !isAtRest ? value : '0',
    );
    return mode !== 'histogram' || families.has(name)
      ? [first(timers!), ...second(histograms!)]
      : second(histograms!);
  });
  return grouped(lines);
}

/** Puts the lines of a family together, as the format demands. */
function grouped(lines: readonly string[]): string {
  const byFamily = new Map<string, string[]>();
  for (const line of lines) {
    const family = /^(?:# \w+ )?(\w+?)(?:_bucket|_sum|_count)?(?:[ {]|$)/.exec(line)?.[1] ?? '';
    const others = byFamily.get(family);
    if (others) others.push(line);
    else byFamily.set(family, [line]);
  }
  return `${[...byFamily.values()]
    .flat()
    .filter((line) => line !== '')
    .join('\n')}\n`;
}

function expectEachCallOnce(page: string, shown: readonly Sample[], mode: Mode) {
  const raw = parse(rawPage(page));
  for (const [name, metric, row] of recordedCases) {
    // The bounds of the other histograms are not those of the recorded page.
    if (name !== page || (mode === 'histogram' && metric.endsWith('_bucket'))) continue;
    const { expected, found } = compare(row, raw, shown);
    expect(Object.keys(found).sort(), metric).toEqual(Object.keys(expected).sort());
    for (const [key, value] of Object.entries(expected))
      expect(found[key], `${metric} ${key}`).toBeCloseTo(value, 6);
  }
}

const pages = ['frontend', 'history'];

describe.each(['timer', 'histogram', 'both'] as const)('mode %s', (mode) => {
  test.each(pages)('%s: every call is there once, from the first page on', async (page) => {
    const role = await playRole(page);
    for (const _ of page === 'frontend' ? [1, 2] : [1]) {
      expectEachCallOnce(page, await role.page(pageIn(mode, rawPage(page))), mode);
      expect(role.refusals()).toEqual([]);
    }
  });

  test('a service that has not begun yet shows its calls once they come', async () => {
    const role = await playRole('frontend');
    const page = rawPage('frontend');
    await role.page(pageIn(mode, page, true));
    expectEachCallOnce('frontend', await role.page(pageIn(mode, page)), mode);
  });

  test('a prefix of the service is in front of the names of both', async () => {
    const role = await playRole('frontend', 'auto', (detector) => withPrefix(detector, 'acme_svc'));
    const page = pageIn(mode, rawPage('frontend'))
      .replace(/^(# \w+ )(\w)/gm, '$1acme_svc_$2')
      .replace(/^(?=[a-z])/gm, 'acme_svc_');
    for (const _ of [1, 2]) expectEachCallOnce('frontend', await role.page(page), mode);
    const names = (await role.page(page)).map(({ name }) => name);
    expect(names.filter((name) => name.startsWith('acme'))).toEqual([]);
  });
});

test.each([
  ['timer', 'histogram'],
  ['histogram', 'timer'],
] as const)('a service that restarts from %s mode in %s mode is followed', async (before, after) => {
  const role = await playRole('frontend');
  const page = rawPage('frontend');
  expectEachCallOnce('frontend', await role.page(pageIn(before, page)), before);
  await role.page(pageIn(after, page, true));
  expectEachCallOnce('frontend', await role.page(pageIn(after, page)), after);
});
