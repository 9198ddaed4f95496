import type { Metric, Unit } from '../catalog.ts';
import type { Kind } from '../model.ts';

type Row = readonly [kind: Kind, unit: Unit, help: string, ownTags?: readonly string[]];
interface Named<N extends string> extends Metric {
  name: N;
}

/** The metrics of one row of the contract's table: the group's tags, then each metric's own. */
export function group<const N extends string>(
  name: string,
  tags: readonly string[],
  rows: Readonly<Record<N, Row>>,
): readonly Named<N>[] {
  return (Object.entries(rows) as [N, Row][]).map(([metric, [kind, unit, help, ownTags = []]]) => ({
    name: metric,
    kind,
    unit,
    tags: [...tags, ...ownTags],
    group: name,
    help,
  }));
}
