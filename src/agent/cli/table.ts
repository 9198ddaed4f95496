/** Rows as columns of equal width, the first row underlined; numbers to the right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  colour = false,
): string {
  const widths = head.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => String(row[i] ?? '').length)),
  );
  const cell = (value: string | number, i: number) =>
    typeof value === 'number' ? String(value).padStart(widths[i]!) : value.padEnd(widths[i]!);
  const line = (cells: readonly (string | number)[]) => cells.map(cell).join('  ').trimEnd();
  const title = colour ? `\u001b[1m${line(head)}\u001b[0m` : line(head);
  return [title, ...rows.map(line), ''].join('\n');
}
