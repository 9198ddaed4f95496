import type { Intake, Kind, RawTags, Shape } from '../../../core/model.ts';
import { Handle } from '../../../core/registry/handles.ts';
import { createRefusedKeys } from '../../../core/registry/refused-series.ts';
import type { Series } from '../../../core/registry/registry-state.ts';
import type { Steps } from '../../../core/slices.ts';
import type { Fields } from '../lines/fields.ts';
import { createLabelCache, findIn, keepIn, keyHash, sweepIn } from './label-cache.ts';

/** The intake of a service's log metrics. */
export interface LogIntake extends Intake {
  /**
   * Reopens a family of the durable store; each step restores one series from the state. Returns the tags of the series. An
   * intake without a state does not have this method.
   */
  restoring?(kind: Kind, name: string, shape: Shape): Steps<readonly RawTags[]>;
  /** The overflow series of a refused series. */
  overflowOf?(refused: { release(): void }): Handle | undefined;
}

/** A series of a log metric: its handle, together with what the metric stores beside it. */
interface LogSeries {
  readonly handle: { release(): void };
}

interface LogSeriesOptions<T extends LogSeries> {
  /** The fields whose values name a series. */
  slots: readonly number[];
  intake: Pick<LogIntake, 'overflowOf'>;
  /** Opens the series of an entry. */
  open(fields: Fields): T;
  /** The same series with another handle. */
  withHandle(series: T, handle: Handle): T;
  /** Two series may share a handle only if this value is equal. Default: all may. */
  variantOf?(series: T): unknown;
}

/**
 * The series of a log metric by the values of an entry's fields, whatever their number: the registry's limits are the only
 * limits. Some combinations of values cost only a hash and a number: those that the registry refuses, and those that share a
 * series with others because an id in them is replaced or a tag is dropped. A sender of ever new values therefore costs little,
 * and each of its entries counts.
 */
interface LogSeriesTable<T extends LogSeries> {
  find(fields: Fields): T;
  /** Releases the series that are gone. */
  sweep(isGone: (series: T) => boolean): void;
}

/** How many combinations of values are remembered by their hash, at 10 bytes each. */
const maxHashes = 131_072;

export function createLogSeries<T extends LogSeries>(options: LogSeriesOptions<T>): LogSeriesTable<T> {
  const { slots, intake, open, withHandle, variantOf = () => undefined } = options;
  const cache = createLabelCache<T>(slots);
  const byHash = createRefusedKeys<T>(maxHashes);
  /**
   * Series that count for several combinations of values. The key is the overflow series, the common series, or 'refused' for
   * series that count nowhere.
   */
  const shared = new Map<Handle | Series | 'refused', T[]>();

  /** The series that counts in the place of `opened`. Releases `opened` if another series counts. */
  const shareIn = (place: Handle | Series | 'refused', opened: T, make: () => T): T => {
    const known = shared.get(place) ?? [];
    const variant = variantOf(opened);
    let one = known.find((series) => variantOf(series) === variant);
    if (one === undefined) {
      one = make();
      shared.set(place, [...known, one]);
    }
    if (one !== opened) opened.handle.release();
    return one;
  };

  /** The series that counts for all combinations that are refused in the same way as `opened`. */
  const shareRefused = (opened: T, handle: Handle): T => {
    const overflow = intake.overflowOf?.(handle);
    if (overflow === undefined) return shareIn('refused', opened, () => opened);
    let isUsed = false;
    const one = shareIn(overflow, opened, () => {
      isUsed = true;
      return withHandle(opened, overflow);
    });
    if (!isUsed) overflow.release();
    return one;
  };

  const openFor = (fields: Fields, hash: number): T => {
    const opened = open(fields);
    const { handle } = opened;
    const isOpen = !(handle instanceof Handle) || handle.waitsIn !== undefined;
    if (!isOpen && handle.refused) {
      const one = shareRefused(opened, handle);
      byHash.add(hash, one);
      return one;
    }
    const hasOthers =
      !isOpen && (handle.owners > 1 || handle.next !== undefined || handle.previous !== undefined);
    const one = hasOthers && handle.grows(0) ? shareIn(handle.series!, opened, () => opened) : opened;
    if (one === opened) keepIn(cache, fields, opened);
    else byHash.add(hash, one);
    return one;
  };

  return {
    find(fields) {
      const found = findIn(cache, fields);
      if (found !== undefined) return found;
      const hash = keyHash(cache, fields);
      return byHash.find(hash) ?? openFor(fields, hash);
    },
    sweep(isGone) {
      let hasGone = false;
      sweepIn(cache, (series) => {
        if (!isGone(series)) return false;
        series.handle.release();
        hasGone = true;
        return true;
      });
      if (!hasGone) return;
      // A released series may have counted for several combinations.
      byHash.clear();
      for (const place of shared.keys())
        if (!(place instanceof Handle) && place !== 'refused') shared.delete(place);
    },
  };
}
