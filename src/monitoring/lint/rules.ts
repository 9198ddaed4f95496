import { canCarry, resultLabels } from '../promql/labels.ts';
import { dashboards, severities } from '../rules/alert.ts';
import type { RenderedAlert } from '../rules/render.ts';
import { absences, hasCondition } from './conditions.ts';
import type { Lint, Subject } from './rule.ts';

const forAlerts = (
  name: string,
  judge: (alert: RenderedAlert, subject: Subject) => readonly string[],
): Lint => ({
  name,
  faults: (subject) => ('alert' in subject.rule ? judge(subject.rule, subject) : []),
});

const wanted = ['summary', 'description', 'runbook_url', 'dashboard_url'] as const;

const annotations = forAlerts('annotation', ({ annotations: given }) =>
  wanted.filter((name) => !given[name]?.trim()).map((name) => `no ${name}`),
);

const summary = forAlerts('summary', ({ annotations: { summary: text } }) =>
  text?.includes('{{') ? ['the summary changes from series to series'] : [],
);

const description = forAlerts('description', ({ annotations: { description: text } }) =>
  /{{[^}]*\$value/.test(text ?? '') ? [] : ['the description does not say the value'],
);

const templateLabels = forAlerts('template-label', ({ annotations: given, labels }, { expr }) => {
  const used = Object.values(given).flatMap((text) =>
    [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!),
  );
  const result = resultLabels(expr);
  const missing = used.filter((label) => !canCarry(result, label) && !(label in labels));
  return [...new Set(missing)].map(
    (label) => `a template names ${label}, which the expression does not keep`,
  );
});

const valueInLabel = forAlerts('value-in-label', ({ labels }) =>
  Object.entries(labels)
    .filter(([, text]) => text.includes('$value'))
    .map(([label]) => `label ${label} holds the value: another alert at each look`),
);

const severity = forAlerts('severity', ({ labels }) =>
  (severities as readonly string[]).includes(labels.severity ?? '') ? [] : [`severity ${labels.severity}`],
);

const packLabel = forAlerts('pack', ({ labels }, { pack }) =>
  labels.pack === pack ? [] : [`label pack is ${labels.pack}, not ${pack}`],
);

const runbook = forAlerts('runbook', ({ alert, annotations: { runbook_url: url } }) =>
  url?.endsWith(`/${alert}.md`) ? [] : [`its runbook is ${url}`],
);

const dashboard = forAlerts('dashboard', ({ annotations: { dashboard_url: url } }) => {
  const uid = /\/d\/svc-([\w-]+)/.exec(url ?? '')?.[1] ?? '';
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
    canCarry(resultLabels(expr), 'cluster') || absences(expr).length > 0 ? [] : ['the result has no cluster'],
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
    const missing = spelled.filter((word) => !canCarry(result, short[word] ?? word));
    return missing.map((word) => `its level names ${word}, which the expression does not keep`);
  },
};

export const ruleLints: readonly Lint[] = [
  ...[annotations, summary, description, templateLabels, valueInLabel, severity, packLabel, runbook],
  ...[dashboard, condition, absent, alertName, cluster, recordName],
];
