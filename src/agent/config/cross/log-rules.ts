import { agentMetrics } from '../../../core/agent-metrics.ts';
import { foldTag } from '../../../core/forbidden.ts';
import type { PlacedFault } from '../loaded.ts';
import { faultAt } from '../placed.ts';
import { entriesAt, itemsAt, nodeAt, plain, type TreeNode, type TreePath, textAt } from '../tree.ts';
import type { Rule } from './rule.ts';

interface NamedRule {
  path: TreePath;
  service: string;
  name: string;
  type: string | undefined;
  buckets: string;
}

function namedRules(tree: TreeNode): NamedRule[] {
  return entriesAt(tree, 'services').flatMap(([service]) =>
    itemsAt(tree, 'services', service, 'logs', 'rules').flatMap((_, index) => {
      const path: TreePath = ['services', service, 'logs', 'rules', index];
      const name = textAt(tree, ...path, 'name');
      const buckets = nodeAt(tree, ...path, 'buckets');
      if (name === undefined) return [];
      return [
        {
          path,
          service,
          name,
          type: textAt(tree, ...path, 'type'),
          buckets: JSON.stringify(buckets && plain(buckets)),
        },
      ];
    }),
  );
}

const parts = ['_bucket', '_sum', '_count'] as const;
const ownNames: ReadonlyMap<string, string> = new Map(agentMetrics.map(({ name, kind }) => [name, kind]));

/** Rules whose families would meet another family. */
export const ruleNamesApart: Rule = ({ tree }) => {
  const rules = namedRules(tree);
  const histograms = new Set(rules.filter(({ type }) => type === 'histogram').map(({ name }) => name));
  return rules.flatMap((rule, index) => {
    const path = [...rule.path, 'name'];
    const say = (message: string): PlacedFault[] => [faultAt(tree, path, message)];
    if (rule.name.startsWith('svc_agent_') || ownNames.has(rule.name)) {
      return say('a metric of the agent itself; use another name');
    }
    const part = parts.find((suffix) => rule.name.endsWith(suffix));
    const whole = part && rule.name.slice(0, -part.length);
    if (whole && (histograms.has(whole) || ownNames.get(whole) === 'histogram')) {
      return say(`taken by the histogram ${whole}; use another name`);
    }
    const earlier = rules.slice(0, index).find(({ name }) => name === rule.name);
    if (!earlier) return [];
    if (earlier.service === rule.service) return say('two rules of one name; use each name once');
    if (earlier.type !== rule.type)
      return say(`a ${earlier.type} in ${earlier.service}; use one type for one name`);
    return earlier.buckets === rule.buckets
      ? []
      : say(`other buckets in ${earlier.service}; use the same for one name`);
  });
};

/** `limits.forbiddenTags` rules over the labels of log rules too. */
export const rulesWithinForbiddenTags: Rule = ({ tree }) => {
  const forbidden = new Set(
    itemsAt(tree, 'limits', 'forbiddenTags').flatMap((item) =>
      item.kind === 'scalar' && typeof item.value === 'string' ? foldTag(item.value) : [],
    ),
  );
  if (forbidden.size === 0) return [];
  return namedRules(tree).flatMap(({ path }) =>
    entriesAt(tree, ...path, 'labels').flatMap(([label]) =>
      forbidden.has(foldTag(label))
        ? [
            faultAt(
              tree,
              [...path, 'labels', label],
              'in limits.forbiddenTags; take it out there, or use another label',
            ),
          ]
        : [],
    ),
  );
};
