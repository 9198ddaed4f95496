import type { PlacedFault } from '../loaded.ts';
import { archivalFaults } from './archival.ts';
import { clusterFaults } from './clusters.ts';
import { describedThroughClusters } from './domains.ts';
import { distinctListeners, listenersApart } from './listeners.ts';
import { ruleNamesApart, rulesWithinForbiddenTags } from './log-rules.ts';
import { backupsOfStores, distinctNames, limitsFit } from './references.ts';
import { oneReporter } from './reporters.ts';
import type { Rule, Whole } from './rule.ts';

/** Every rule between parts of `agent.yaml`. */
const rules: readonly Rule[] = [
  oneReporter,
  distinctListeners,
  listenersApart,
  ruleNamesApart,
  rulesWithinForbiddenTags,
  distinctNames,
  backupsOfStores,
  limitsFit,
  ({ tree }) => clusterFaults(tree),
  describedThroughClusters,
  ({ tree }) => archivalFaults(tree),
];

export function crossFaults(whole: Whole): PlacedFault[] {
  return rules.flatMap((rule) => rule(whole));
}
