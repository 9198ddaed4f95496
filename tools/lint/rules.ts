import type { PackName } from '../../src/monitoring/alert.ts';
import type { RenderedAlert, RuleFile } from '../../src/monitoring/packs.ts';
import { canHave, type Expr, parse, resultLabels, walk } from '../promql.ts';
import { calls, type Finding, type Lint, type Subject, seriesLints, shapeLints } from './expressions.ts';

/** Whether an expression checks that series are absent. */
function isAbsence(expr: Expr): boolean {
  let found = false;
  walk(expr, (node) => {
    found ||= calls(node, (name) => name.startsWith('absent'));
  });
  return found;
}

const forAlerts = (
  name: string,
  check: (alert: RenderedAlert, subject: Subject) => readonly string[],
): Lint => ({
  name,
  faults: (subject) => ('alert' in subject.rule ? check(subject.rule, subject) : []),
});

const subjects = [
  ...['svc_service', 'instance', 'job', 'store', 'backup', 'domain', 'tasklist', 'archive', 'probe'],
  ...['operation', 'cluster', 'remote_cluster', 'source_cluster', 'callee'],
];

const summary = forAlerts('summary', ({ annotations: { summary: text = '' } }) =>
  subjects.some((label) => text.includes(`$labels.${label} `)) ? [] : ['the summary names no subject'],
);

const description = forAlerts('description', ({ annotations: { description: text = '' } }) =>
  /{{[^}]*\$value/.test(text) ? [] : ['the description does not give the value'],
);

const templateLabels = forAlerts('template-label', ({ annotations: given, labels }, { expr }) => {
  const used = Object.values(given).flatMap((text) =>
    [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!),
  );
  const result = resultLabels(expr);
  const missing = used.filter((label) => !canHave(result, label) && !(label in labels));
  return [...new Set(missing)].map(
    (label) => `a template names ${label}, which the expression does not keep`,
  );
});

const absent = forAlerts('absent', ({ for: hold }, { expr }) =>
  !hold && isAbsence(expr) ? ['absent without for fires whenever the server starts'] : [],
);

/**
 * The result has a label for its cluster and its environment: two environments may have the same names of clusters, roles,
 * domains and stores. A series that is absent everywhere has neither label.
 */
const site = (label: string): Lint => ({
  name: label,
  faults: ({ expr }) =>
    canHave(resultLabels(expr), label) || isAbsence(expr) ? [] : [`the result has no ${label}`],
});

const shortLabels: Readonly<Record<string, string>> = {
  service: 'svc_service',
  type: 'backup_type',
  source: 'source_cluster',
  target: 'target_cluster',
};

const recordName: Lint = {
  name: 'record-name',
  faults({ rule, expr }) {
    if (!('record' in rule)) return [];
    const [, level = '', metric = ''] = /^([a-z_]+):([a-z_]+):[a-z0-9_]+$/.exec(rule.record) ?? [];
    if (!level) return ['its name is not level:metric:operation'];
    if (metric.endsWith('_total')) return ['a recorded rate is no total'];
    const result = resultLabels(expr);
    const spelled = level === 'slo' ? ['cluster'] : level.split('_');
    const missing = spelled.filter((word) => !canHave(result, shortLabels[word] ?? word));
    return missing.map((word) => `its level names ${word}, which the expression does not keep`);
  },
};

const lints: readonly Lint[] = [
  ...[...seriesLints, ...shapeLints],
  ...[summary, description, templateLabels, absent, site('cluster'), site('environment'), recordName],
];

export const lintNames: readonly string[] = lints.map(({ name }) => name);

/**
 * Checks the rules of a pack against the types of the catalogs and the labels of their results, neither of which promtool knows.
 * `recorded` are names that other packs record. Throws if an expression is not PromQL.
 */
export function lintRules(pack: PackName, file: RuleFile, recorded: readonly string[] = []): Finding[] {
  const rules = file.groups.flatMap((group) => group.rules);
  const names = new Set([...recorded, ...rules.flatMap((rule) => ('record' in rule ? [rule.record] : []))]);
  return rules.flatMap((rule) => {
    const subject = { rule, expr: parse(rule.expr), pack, recorded: names };
    return lints.flatMap(({ name, faults }) =>
      faults(subject).map((fault) => ({
        lint: name,
        rule: 'alert' in rule ? rule.alert : rule.record,
        fault,
      })),
    );
  });
}
