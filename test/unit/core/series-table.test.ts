import { describe, expect, it } from 'vitest';
import { AgentError } from '../../../src/core/errors.ts';
import { createTable, readTable } from '../../../src/core/registry/durable-table.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('the table', () => {
  it('has one line per series, blank where one was struck out', () => {
    const table = createTable();
    table.add(0, '[0]');
    table.add(1, '["é"]');
    table.add(2, '[2]');
    table.remove(1);
    table.remove(1);
    expect(
      new TextDecoder()
        .decode(table.bytes())
        .split('\n')
        .map((line) => line.trim()),
    ).toEqual(['[0]', '', '[2]', '']);
  });

  it('leaves what a freeze was given alone when a line is struck out or comes later', () => {
    const table = createTable();
    for (const at of [0, 1]) table.add(at, `[${at}]`);
    const given = table.bytes();
    table.remove(0);
    table.add(2, '[2]');
    expect(new TextDecoder().decode(given)).toBe('[0]\n[1]\n');
    expect(new TextDecoder().decode(table.bytes())).toBe('   \n[1]\n[2]\n');
  });

  it('keeps every line in order through growth and tidying, and does not grow with churn', () => {
    const table = createTable();
    const expected = new Map<number, string>();
    for (let i = 0; i < 20_000; i++) {
      const [at, gone] = [i % 300, (i * 3) % 300];
      const line = JSON.stringify([at, i, 'x'.repeat(i % 40)]);
      table.add(at, line);
      expected.delete(at);
      expected.set(at, line);
      if (i % 7 !== 3) continue;
      table.remove(gone);
      expected.delete(gone);
    }
    const lines = new TextDecoder().decode(table.bytes()).split('\n');
    expect(lines.filter((line) => line.trim() !== '')).toEqual([...expected.values()]);
    expect(table.bytes().length).toBeLessThan(32_768);
  });

  it('takes over cells of many digits', () => {
    const wide = Array.from({ length: 400 }, (_, i) => JSON.stringify(`${i}`)).join();
    const lines = Array.from({ length: 4 }, (_, i) => `[${i},"histogram","h${i}",1,0,[${wide}]]`);
    const old = bytes(lines.join('\n'));
    const table = createTable();
    table.take(old, readTable(old, 1e6));
    // A histogram of 400 bounds takes 403 cells.
    expect(new TextDecoder().decode(table.bytes())).toBe(
      lines.map((line, i) => `${line.replace(/^\[\d+/, `[${i * 403}`)}\n`).join(''),
    );
  });

  it('takes the lines of another with new cells, side by side, whatever was struck out between them', () => {
    const lines = [
      '[7,"histogram","é",1,0,["1"],"a","ü"]',
      '   ',
      '[123456789,"counter","x",2,1,[],"b","\\n"]',
    ];
    const old = bytes(lines.join('\n'));
    const rows = readTable(old, 123_456_790);
    expect(rows.from).toEqual([7, 123_456_789]);
    const table = createTable();
    table.take(old, rows);
    table.add(15, '[15]');
    const taken = new TextDecoder().decode(table.bytes());
    expect(taken.split('\n')).toEqual([
      '[0,"histogram","é",1,0,["1"],"a","ü"]',
      '[4,"counter","x",2,1,[],"b","\\n"]',
      '[15]',
      '',
    ]);
    table.remove(4);
    const left = new TextDecoder().decode(table.bytes()).split('\n');
    expect(left.map((line) => line.trim())).toEqual([taken.split('\n')[0], '', '[15]', '']);
  });

  it.each<[string, string | Uint8Array]>([
    ['not JSON', '[0,"counter"'],
    ['not an array', '{}'],
    ['unknown kind', '[0,"meter","x",0,0,[]]'],
    ['bounds are not texts', '[0,"counter","x",0,0,[1]]'],
    ['no family name', '[0,"counter",7,0,0,[]]'],
    ['no start time', '[0,"counter","x","y",0,[]]'],
    ['outside the values', '[4,"counter","x",0,0,[]]'],
    ['outside the values', '[-1,"counter","x",0,0,[]]'],
    ['outside the values', '[0.5,"counter","x",0,0,[]]'],
    ['outside the values', '[0,"histogram","x",0,0,["1","2"]]'],
    ['not pairs', '[0,"counter","x",0,0,[],"a"]'],
    ['not pairs', '[0,"counter","x",0,0,[],"a",1]'],
    ['duplicate series', '[0,"counter","x",0,0,[]]\n[1,"counter","x",0,0,[]]'],
    ['not UTF-8', new Uint8Array([0xff, 0xfe])],
  ])('that cannot be read is refused: %s (%#)', (what, table) => {
    const read = () => readTable(typeof table === 'string' ? bytes(table) : table, 4);
    expect(read).toThrow(AgentError);
    expect(read).toThrow(what);
    expect(read).toThrow(expect.objectContaining({ code: 'snapshot_corrupt' }));
  });
});
