import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAst } from 'vitest/node';
import { root, sourceFiles } from './imports.ts';

/**
 * A function has at most as many lines as a screen. A factory is measured without the functions in it, as a class would be
 * without its methods.
 */
const linesLimit = 60;
/** The limit for a factory with all its functions: a reader of one of them has to know the variables of all. */
const factoryLimit = 220;

interface Node {
  type: string;
  start: number;
  end: number;
  body?: Node;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode);

/** How often a character occurs in a part of a text. */
function count(text: string, character: string, start: number, end: number): number {
  let found = 0;
  for (let at = text.indexOf(character, start); at >= 0 && at < end; at = text.indexOf(character, at + 1))
    found++;
  return found;
}

const isFunction = ({ type }: Node) => /Function(?:Declaration|Expression)$/.test(type);

/** Whether a function only returns one literal, such as the rows of a dashboard or the fields of a series. */
const isTable = ({ body }: Node) => body?.type === 'ObjectExpression' || body?.type === 'ArrayExpression';

/** The functions of a source that are longer than a screen, with their own numbers of lines. */
function tooLong(text: string): string[] {
  const linesIn = (start: number, end: number) => 1 + count(text, '\n', start, end);
  const found: string[] = [];
  /** Adds up the lines of the functions in a node. */
  const visit = (node: Node): number => {
    const inner = childrenOf(node).reduce((sum, child) => sum + visit(child), 0);
    if (!isFunction(node)) return inner;
    const lines = linesIn(node.start, node.end);
    if ((lines - inner > linesLimit || lines > factoryLimit) && !isTable(node))
      found.push(`line ${linesIn(0, node.start)}: ${lines > factoryLimit ? lines : lines - inner} lines`);
    return lines;
  };
  for (const statement of childrenOf(parseAst(text, { lang: 'ts' }) as unknown as Node))
    if (linesIn(statement.start, statement.end) > linesLimit) visit(statement);
  return found;
}

test('a function fits on a screen, but for tables', () => {
  const found = [...sourceFiles('src'), ...sourceFiles('tools')].flatMap((file) =>
    tooLong(readFileSync(join(root, file), 'utf8')).map((fault) => `${file}, ${fault}`),
  );
  expect(found).toEqual([]);
});

test.each([
  ['a long function', ['function f() {', ...Array(60).fill('  g();'), '}'], ['line 1: 62 lines']],
  [
    'a long factory of short functions',
    ['function f() {', ...Array(60).fill('  const g = () => h();'), '}'],
    [],
  ],
  [
    'a factory of too many functions',
    ['function f() {', ...Array(220).fill('  const g = () => h();'), '}'],
    ['line 1: 222 lines'],
  ],
  [
    'a long function in a factory',
    ['const f = () => {', 'return () => {', ...Array(60).fill('g();'), '};', '};'],
    ['line 2: 62 lines'],
  ],
  ['a table', ['const f = (q) => ({', ...Array(60).fill('  q: q(),'), '});'], []],
])('the check itself: %s', (_, lines, found) => expect(tooLong(lines.join('\n'))).toEqual(found));
