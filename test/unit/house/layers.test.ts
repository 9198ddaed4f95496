import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { allImports, type Import, importsOf, root, sourceFiles } from './imports.ts';

/** The part of the program to which a file belongs: core, sources, probes, reporters, monitoring or agent. */
const roomOf = (file: string) => file.split('/')[1] ?? '';
const middle = ['sources', 'probes', 'reporters', 'monitoring'];

/** What is wrong with an import; undefined if nothing is. */
function faultOf({ from, to, own }: Import): string | undefined {
  const [room, target] = [roomOf(from), roomOf(to)];
  if (!own) return room === 'core' && !to.startsWith('./') ? `core imports ${to}` : undefined;
  if (!to.startsWith('src/')) return `${from} reaches out of src to ${to}`;
  if (room === target || room === 'agent' || target === 'core') return undefined;
  return middle.includes(room) || room === 'core'
    ? `${from} imports ${to}: ${room} must not know ${target}`
    : undefined;
}

/** Adjacent folders that import each other, each pair once. */
function siblings(imports: readonly Import[]): string[] {
  const pairs = new Set<string>();
  for (const { from, to, own } of imports) {
    const [mine, theirs] = [from.split('/'), to.split('/')];
    const at = mine.findIndex((part, index) => part !== theirs[index]);
    const folders = [mine, theirs].filter((parts) => parts.length > at + 1);
    if (own && folders.length === 2)
      pairs.add(folders.map((parts) => parts.slice(0, at + 1).join('/')).join(' '));
  }
  const isBoth = (pair: string) => pairs.has(pair.split(' ').reverse().join(' '));
  return [...pairs].filter((pair) => isBoth(pair) && pair.split(' ')[0]! < pair.split(' ')[1]!).sort();
}

describe('the house', () => {
  test('imports point down only, and core imports no package', () => {
    expect(allImports().map(faultOf).filter(Boolean)).toEqual([]);
  });

  test('folders beside each other import in one direction', () => {
    expect(siblings(allImports())).toEqual([]);
  });

  test('the readers of backup formats do not import what uses them', () => {
    const users = /^src\/probes\/backups\/[^/]+$/;
    const isUp = ({ from, to }: Import) => from.startsWith('src/probes/backups/formats/') && users.test(to);
    expect(allImports().filter(isUp)).toEqual([]);
  });

  test('only main ends the process', () => {
    const enders = sourceFiles('src').filter((file) =>
      /\bprocess\.(exit|abort)\(|\bprocess\.kill\(process\.pid/.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(enders.filter((file) => file !== 'src/agent/main.ts')).toEqual([]);
  });
});

describe('the check itself sees', () => {
  const one = (from: string, line: string) => importsOf(from, line).map(faultOf).filter(Boolean);
  test.each([
    ['an edge up', 'src/core/a.ts', "import type { X } from '../agent/b.ts';"],
    ['an edge sideways', 'src/sources/logs/a.ts', "import { x } from '../../reporters/pull/b.ts';"],
    ['a dynamic edge', 'src/probes/a.ts', "const x = await import('../sources/b.ts');"],
    ['a re-export', 'src/reporters/a.ts', "export * from '../agent/b.ts';"],
    ['a package in core', 'src/core/a.ts', "import { z } from 'zod';"],
    ['a built-in in core', 'src/core/a.ts', "import fs from 'node:fs';"],
  ])('%s', (_, from, line) => expect(one(from, line)).toHaveLength(1));

  test('two folders that import each other, and not a folder and what is in it', () => {
    const edge = (from: string, to: string) => ({ from, to, own: true });
    const both = [edge('src/p/a/x.ts', 'src/p/b/y.ts'), edge('src/p/b/z/y.ts', 'src/p/a/x.ts')];
    const inside = [edge('src/p/x.ts', 'src/p/b/y.ts'), edge('src/p/b/y.ts', 'src/p/x.ts')];
    expect([siblings(both), siblings(both.slice(1)), siblings(inside)]).toEqual([
      ['src/p/a src/p/b'],
      [],
      [],
    ]);
  });
});
