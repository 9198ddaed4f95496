import { errorText } from '../../src/core/errors.ts';
import { dashboards, type PackName, severities } from '../../src/monitoring/alert.ts';
import type { RenderedAlert, RenderedRule, RuleFile } from '../../src/monitoring/packs.ts';
import {
  type Binary,
  canHave,
  comparisons,
  type Expr,
  parse,
  resultLabels,
  type Selector,
  walk,
} from '../promql.ts';
import { calls, type Finding, type Lint, type Subject, seriesLints, shapeLints } from './expressions.ts';

/** Whether an expression can be false: a comparison, `absent`, or a set operator that takes series away. */
function hasCondition(expr: Expr): boolean {
  let found = false;
  walk(expr, (node) => {
    if (node.type === 'binary' && isCondition(node)) found = true;
    if (calls(node, (name) => name.startsWith('absent'))) found = true;
  });
  return found;
}

const isCondition = ({ op, bool }: Binary): boolean => (comparisons.has(op) && !bool) || op === 'unless';

/** Selectors of an expression that are looked for by their absence. */
function absences(expr: Expr): readonly Selector[] {
  const found: Selector[] = [];
  walk(expr, (node, around) => {
    if (node.type === 'selector' && calls(around.at(-1), (name) => name.startsWith('absent')))
      found.push(node);
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

const wanted = ['summary', 'description'] as const;

const annotations = forAlerts('annotation', ({ annotations: given }) =>
  wanted.filter((name) => !given[name]?.trim()).map((name) => `no ${name}`),
);

const subjects = [
  ...['svc_service', 'instance', 'job', 'store', 'backup', 'domain', 'tasklist', 'archive', 'probe'],
  ...['operation', 'cluster', 'remote_cluster', 'source_cluster', 'callee'],
];

const summary = forAlerts('summary', ({ annotations: { summary: text } }) =>
  !text || subjects.some((label) => text.includes(`$labels.${label} `))
    ? []
    : ['the summary names no subject'],
);

const description = forAlerts('description', ({ annotations: { description: text } }) => [
  ...(/{{[^}]*\$value/.test(text ?? '') ? [] : ['the description does not give the value']),
  ...(/ First steps: \S/.test(text ?? '') ? [] : ['the description gives no first steps']),
]);

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

const valueInLabel = forAlerts('value-in-label', ({ labels }) =>
  Object.entries(labels)
    .filter(([, text]) => text.includes('$value'))
    .map(([label]) => `label ${label} holds the value: another alert at each check`),
);

const severity = forAlerts('severity', ({ labels }) =>
  (severities as readonly string[]).includes(labels.severity ?? '') ? [] : [`severity ${labels.severity}`],
);

const packLabel = forAlerts('pack', ({ labels }, { pack }) =>
  labels.pack === pack ? [] : [`label pack is ${labels.pack}, not ${pack}`],
);

const runbook = forAlerts('runbook', ({ alert, annotations: { runbook_url: url } }) =>
  url === undefined || (/^https?:/.test(url) && url.endsWith(`/${alert}.md`))
    ? []
    : [`its runbook is ${url}`],
);

const dashboard = forAlerts('dashboard', ({ annotations: { dashboard_url: url } }) => {
  if (url === undefined) return [];
  const uid = /^https?:.*\/d\/svc-([\w-]+)/.exec(url)?.[1] ?? '';
  return (dashboards as readonly string[]).includes(uid) ? [] : [`there is no dashboard svc-${uid}`];
});

const condition = forAlerts('condition', (_, { expr }) => (hasCondition(expr) ? [] : ['it is always true']));

const absent = forAlerts('absent', ({ for: hold }, { expr }) =>
  !hold && absences(expr).length > 0 ? ['absent without for fires whenever the server starts'] : [],
);

const alertName = forAlerts('name', ({ alert }) =>
  /^Svc[A-Z][A-Za-z]+$/.test(alert) ? [] : ['its name is not SvcSomething'],
);

/** Of both kinds of rules; what is absent everywhere has no cluster. */
const cluster: Lint = {
  name: 'cluster',
  faults: ({ expr }) =>
    canHave(resultLabels(expr), 'cluster') || absences(expr).length > 0 ? [] : ['the result has no cluster'],
};

/** Two environments may have the same names of clusters, roles, domains and stores. */
const environment: Lint = {
  name: 'environment',
  faults: ({ expr }) =>
    canHave(resultLabels(expr), 'environment') || absences(expr).length > 0
      ? []
      : ['the result does not say of which environment it is'],
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
    const short: Readonly<Record<string, string>> = {
      service: 'svc_service',
      type: 'backup_type',
      source: 'source_cluster',
      target: 'target_cluster',
    };
    const missing = spelled.filter((word) => !canHave(result, short[word] ?? word));
    return missing.map((word) => `its level names ${word}, which the expression does not keep`);
  },
};

const ruleLints: readonly Lint[] = [
  ...[annotations, summary, description, templateLabels, valueInLabel, severity, packLabel, runbook],
  ...[dashboard, condition, absent, alertName, cluster, environment, recordName],
];

const lints = [...seriesLints, ...shapeLints, ...ruleLints];

/** Every lint by its name, `syntax` and `duplicate` included. */
export const lintNames: readonly string[] = ['syntax', 'duplicate', ...lints.map(({ name }) => name)];

const nameOf = (rule: RenderedRule) => ('alert' in rule ? rule.alert : rule.record);

/**
 * Judges the rules of a pack by the types of the catalogs: what pint asks a server for, without a server.
 * `recorded` are names that other packs record.
 */
export function lintRules(pack: PackName, file: RuleFile, recorded: readonly string[] = []): Finding[] {
  const rules = file.groups.flatMap((group) => group.rules);
  const names = new Set([...recorded, ...rules.flatMap((rule) => ('record' in rule ? [rule.record] : []))]);
  return [...duplicates(rules), ...rules.flatMap((rule) => findings(rule, pack, names))];
}

function findings(rule: RenderedRule, pack: PackName, recorded: ReadonlySet<string>): Finding[] {
  const name = nameOf(rule);
  try {
    const subject = { rule, expr: parse(rule.expr), pack, recorded };
    return lints.flatMap((lint) =>
      lint.faults(subject).map((fault) => ({ lint: lint.name, rule: name, fault })),
    );
  } catch (thrown) {
    return [{ lint: 'syntax', rule: name, fault: errorText(thrown) }];
  }
}

/** Rules that Prometheus could not tell apart. */
function duplicates(rules: readonly RenderedRule[]): Finding[] {
  const seen = new Set<string>();
  return rules.flatMap((rule) => {
    const identity = JSON.stringify([nameOf(rule), 'alert' in rule ? rule.labels : {}]);
    const isNew = !seen.has(identity);
    seen.add(identity);
    return isNew
      ? []
      : [{ lint: 'duplicate', rule: nameOf(rule), fault: 'there is one of that name and those labels' }];
  });
}
