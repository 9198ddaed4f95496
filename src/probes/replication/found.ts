import type { Readings } from '../../core/ports.ts';
import type { ClusterGroupOptions } from '../clusters/options.ts';
import type { ReplicationOptions } from './options.ts';
import { type Direction, type Pair, pairsOf } from './pairs.ts';
import { type Quantity, type Reading, readingsOf } from './places.ts';

/** A reading that tells which clusters it is about. */
export interface Told extends Reading {
  pair: Pair;
}

/** What the scraped metrics have of one quantity. */
export interface Found {
  /** The family it was found in. */
  metric?: string;
  told: readonly Told[];
  /** Series whose labels do not tell which clusters they are about. */
  untold: number;
}

const directions: Readonly<Record<Quantity, Direction>> = {
  lag: 'labelled',
  applied: 'incoming',
  failures: 'incoming',
};

/** Finds a quantity among the scraped metrics, each reading with its pair of clusters. */
export function finderIn(
  group: ClusterGroupOptions,
  replication: ReplicationOptions | undefined,
  readings: Readings,
): (quantity: Quantity) => Found {
  const pairOf = pairsOf(group);
  return (quantity) => {
    const { metric, values } = readingsOf(readings, quantity, replication);
    const told = values.flatMap((reading) => {
      const pair = pairOf(reading, directions[quantity]);
      return pair ? [{ ...reading, pair }] : [];
    });
    return { metric, told, untold: values.length - told.length };
  };
}
