import type { LineTable, Page } from './line-table.ts';

/** The lines of a page in their order, beside those of the last page that was taken. */
interface PageOrder {
  begin(): void;
  /** The line that comes next if the page repeats the last one; -1 if that is not known. */
  expected(): number;
  /** Records the expected line. */
  note(id: number, value: number): void;
  /** Records a line at another position; false if this page already has the line. */
  noteMoved(id: number, value: number): boolean;
  /** Records a line that the last page did not have. */
  noteNew(id: number, value: number): void;
  /** Whether this page already has a line. */
  has(id: number): boolean;
  /** The lines of the last page. */
  known(): Int32Array;
  /** The lines of this page. */
  page(): Pick<Page, 'round' | 'order' | 'count' | 'changed'>;
  /** Sets the page with which the next page is compared. */
  take(page: Page): void;
}

export function createPageOrder(table: LineTable): PageOrder {
  let round = 0;
  let lastOrder: Int32Array = new Int32Array(64);
  let lastCount = 0;
  let order: Int32Array = new Int32Array(64);
  let count = 0;
  let next = 0;
  let moved = false;

  const append = (id: number, value: number): void => {
    table.seen[id] = round;
    table.incoming[id] = value;
    if (count === order.length) {
      const longer = new Int32Array(count * 2);
      longer.set(order);
      order = longer;
    }
    order[count] = id;
    table.position[id] = count++;
  };

  return {
    begin() {
      round++;
      count = next = 0;
      moved = false;
    },
    expected: () => (next < lastCount ? lastOrder[next]! : -1),
    note(id, value) {
      next++;
      append(id, value);
    },
    noteMoved(id, value) {
      if (table.seen[id] === round) return false;
      const position = table.position[id]!;
      if (position !== next || lastOrder[position] !== id) moved = true;
      if (lastOrder[position] === id) next = position + 1;
      append(id, value);
      return true;
    },
    noteNew(id, value) {
      moved = true;
      append(id, value);
    },
    has: (id) => table.seen[id] === round,
    known: () => lastOrder.subarray(0, lastCount),
    page: () => ({ round, order, count, changed: moved || count !== lastCount }),
    take(page) {
      [lastOrder, order] = [fitting(page), lastOrder];
      lastCount = page.count;
    },
  };
}

/** The order of a page, in an array of exactly its length if most of the page's lines were refused. */
const fitting = ({ order, count }: Page): Int32Array =>
  order.length > 4 * Math.max(count, 64) ? order.slice(0, Math.max(count, 64)) : order;
