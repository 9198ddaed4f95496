import { Cells } from './cells.ts';
import { nextStoreId, type Store, type Stored } from './store.ts';

/** A store whose numbers come page by page. */
export interface PageStore extends Store {
  /** Shows the page that has been filled, whole. Not calling it drops the page. */
  swap(): void;
  /** Shows nothing, until the next swap: the target is gone. */
  hide(): void;
}

interface Page {
  values: Float64Array;
  holders: number;
}

/**
 * Two arrays take turns: one is filled while views show the other. An array that a view still holds is left
 * to it. A page that was dropped half-way leaves its numbers behind unseen; the next page overwrites them, and
 * increases that it had added to merged series are right as they are.
 */
export function createPageStore(): PageStore {
  const cells = new Cells();
  const restarts: [Stored, number][] = [];
  let shown: Page = { values: new Float64Array(0), holders: 0 };
  let step = 0;
  let shownStep = 0;
  let lastBirth = 0;
  let sight = 0;

  /** An array of the shown one's size that nobody looks at. */
  const freePage = (before: Page): Float64Array => {
    const fits = before.holders === 0 && before.values.length === shown.values.length;
    return fits ? before.values : new Float64Array(shown.values.length);
  };

  return {
    id: nextStoreId(),
    cells,
    get shownStep() {
      return shownStep;
    },
    get sight() {
      return sight;
    },
    birth() {
      lastBirth = step;
      return step;
    },
    hold() {
      const page = shown;
      page.holders += 1;
      const release = () => {
        page.holders -= 1;
      };
      return { values: page.values, release };
    },
    restarted: (series, nowMs) => void restarts.push([series, nowMs]),
    swap() {
      const before = shown;
      shown = { values: cells.live, holders: 0 };
      const next = freePage(before);
      next.set(shown.values);
      cells.live = next;
      if (lastBirth >= shownStep) sight += 1;
      step += 1;
      shownStep = step;
      for (const [series, nowMs] of restarts.splice(0)) series.beginAt(nowMs);
    },
    hide() {
      shownStep = 0;
      sight += 1;
    },
  };
}
