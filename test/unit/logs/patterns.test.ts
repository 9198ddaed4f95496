import { describe, expect, test } from 'vitest';
import { expandBraces, parseExclude, parseGlob } from '../../../src/sources/logs/discovery/patterns.ts';

const matches = (pattern: string, path: string) =>
  parseGlob(pattern, '/cwd').some((glob) => glob.matches(path));

describe('a pattern', () => {
  test.each([
    ['/var/log/app.log', '/var/log/app.log', true],
    ['/var/log/app.log', '/var/log/appxlog', false],
    ['/var/log/*.log', '/var/log/app.log', true],
    ['/var/log/*.log', '/var/log/deep/app.log', false],
    ['/var/log/*.log', '/var/log/.hidden.log', false],
    ['/var/log/.*.log', '/var/log/.hidden.log', true],
    ['/var/log/app?.log', '/var/log/app1.log', true],
    ['/var/log/app?.log', '/var/log/app.log', false],
    ['/var/log/[a-c]*.log', '/var/log/bee.log', true],
    ['/var/log/[!a-c]*.log', '/var/log/bee.log', false],
    ['/var/log/[^a-c]*.log', '/var/log/zoo.log', true],
    ['/var/log/[]x].log', '/var/log/].log', true],
    ['/var/log/[open.log', '/var/log/[open.log', true],
    ['/var/log/{history,matching}.log', '/var/log/matching.log', true],
    ['/var/log/{history,matching}.log', '/var/log/worker.log', false],
    ['/var/{log/a,lib/b}/*.log', '/var/lib/b/x.log', true],
    ['/var/log/**/*.log', '/var/log/app.log', true],
    ['/var/log/**/*.log', '/var/log/a/b/c/app.log', true],
    ['/var/log/**/*.log', '/var/log/a/.b/app.log', false],
    ['/var/log/**', '/var/log/a/b', true],
    ['/**/app.log', '/app.log', true],
    ['/var/**/x/**/app.log', '/var/a/x/b/c/app.log', true],
    ['/var/**/x/**/app.log', '/var/a/y/b/c/app.log', false],
    ['/var/log/a+b(c).log', '/var/log/a+b(c).log', true],
    ['/var/log/\\*.log', '/var/log/*.log', true],
    ['/var/log/\\*.log', '/var/log/a.log', false],
    ['logs/*.log', '/cwd/logs/a.log', true],
    ['./logs/../*.log', '/cwd/a.log', true],
    ['/var/log/日本*.log', '/var/log/日本語.log', true],
    ['/var/log/?.log', '/var/log/😀.log', true],
    ['/var/log/*.log', '/var/log/a\nb.log', true],
  ])('%s and %s: %s', (pattern, path, expected) => expect(matches(pattern, path)).toBe(expected));
});

test.each([
  ['a', ['a']],
  ['{a,b}c', ['ac', 'bc']],
  ['{a,b}{1,2}', ['a1', 'a2', 'b1', 'b2']],
  ['{a,b{1,2}}', ['a', 'b1', 'b2']],
  ['{a}', ['{a}']],
  ['{a,b', ['{a,b']],
  ['{,x}y', ['y', 'xy']],
  ['\\{a,b}', ['\\{a,b}']],
])('braces of %s', (pattern, expected) => expect(expandBraces(pattern).sort()).toEqual([...expected].sort()));

test('braces multiply up to a limit', () => {
  expect(expandBraces('{a,b}'.repeat(30)).length).toBeLessThan(5000);
});

test.each([
  ['*.gz', '/var/log/a.gz', true],
  ['debug*', '/var/log/debug-1.log', true],
  ['debug*', '/var/debug/a.log', false],
  ['/var/log/old/**', '/var/log/old/a/b.log', true],
  ['old/*', '/cwd/old/a.log', true],
])('exclude %s and %s: %s', (pattern, path, expected) => {
  expect(parseExclude(pattern, '/cwd')(path)).toBe(expected);
});

test('every printable character is itself beside a wildcard', () => {
  for (let code = 0x20; code < 0x7f; code++) {
    const char = String.fromCharCode(code);
    if ('*?[]{}/\\'.includes(char)) continue;
    for (const [step, name] of [
      [`a${char}b*`, `a${char}b1`],
      [`*${char}b`, `x${char}b`],
      [`?${char}${char}[0-9]`, `x${char}${char}7`],
      [`x${char}*`, `x${char}`],
    ] as const) {
      expect(matches(`/d/${step}`, `/d/${name}`), step).toBe(true);
      expect(matches(`/d/${step}`, `/d/${name}\u0001${name}-other`.replace(char, 'é')), step).toBe(false);
    }
  }
});

test.each(['frontend-*.log', '*-debug.log', 'a-b?c', '[a-c]-*', 'x{1,2}-*.log'])('%s compiles', (pattern) => {
  expect(() => parseGlob(pattern, '/cwd')).not.toThrow();
});

test('a class that is no range is a clear error', () => {
  expect(() => parseGlob('/var/log/[z-a]*.log')).toThrow(/logs.paths: path pattern cannot be compiled/);
});
