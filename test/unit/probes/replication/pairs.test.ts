import { expect, test } from 'vitest';
import { type Direction, pairsOf } from '../../../../src/probes/replication/replication-check.ts';
import { clusterGroup } from '../../../cluster-group.ts';

const two = clusterGroup({}, {}, { enabled: false });
const three = clusterGroup({}, {}, {});
const dashed = clusterGroup({ name: 'dc1' }, { name: 'dc-2.eu' });

test.each<[string, typeof two, Direction, string?, string?, string?]>([
  ['both are named', three, 'labelled', 'dc2', 'dc3', 'dc2 > dc3'],
  ['both are named, for the own one', three, 'incoming', 'dc2', 'dc1', 'dc2 > dc1'],
  ['a cluster with itself', three, 'labelled', 'dc1', 'dc1'],
  ['one of no group', three, 'labelled', 'dc1', 'dc9'],
  ['one that is disabled', two, 'labelled', 'dc1', 'dc3'],
  ['only where it goes', three, 'labelled', undefined, 'dc2', 'dc1 > dc2'],
  ['only where it comes from', three, 'labelled', 'dc2', undefined, 'dc2 > dc1'],
  ['only the own one as source, of two', two, 'labelled', 'dc1', undefined, 'dc1 > dc2'],
  ['only the own one as target, of two', two, 'labelled', undefined, 'dc1', 'dc2 > dc1'],
  ['only the own one, of three', three, 'labelled', 'dc1', undefined],
  ['none, of two', two, 'labelled', undefined, undefined, 'dc1 > dc2'],
  ['none, of three', three, 'labelled', undefined, undefined],
  ['tasks that come in, the source called target', three, 'incoming', undefined, 'dc2', 'dc2 > dc1'],
  ['tasks that come in, the own one by both', two, 'incoming', 'dc1', 'dc1', 'dc2 > dc1'],
  ['tasks that come in from the only peer', two, 'incoming', undefined, undefined, 'dc2 > dc1'],
  ['tasks that come in from one of two peers', three, 'incoming', undefined, undefined],
  ['a name that was sanitized', dashed, 'labelled', 'dc1', 'dc_2_eu', 'dc1 > dc-2.eu'],
])('%s', (_, group, direction, source, target, pair) => {
  const found = pairsOf(group)({ series: '', value: 0, source, target }, direction);
  expect(found && `${found.source} > ${found.target}`).toBe(pair);
});
