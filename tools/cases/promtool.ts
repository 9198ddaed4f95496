import type { Pack } from '../../src/monitoring/alert.ts';
import {
  type RenderedAlert,
  type RenderedRule,
  renderPack,
  shippedOptions,
} from '../../src/monitoring/packs.ts';
import type { Extra, Firing, HandWritten, Plan, Series } from './case.ts';

/** One test group of `promtool test rules`. */
interface PromtoolTest {
  name: string;
  interval: string;
  input_series: readonly { series: string; values: string }[];
  alert_rule_test: readonly {
    eval_time: string;
    alertname: string;
    exp_alerts: readonly { exp_labels: Record<string, string>; exp_annotations: Record<string, string> }[];
  }[];
}

/** A file of `promtool test rules`. */
interface PromtoolFile {
  rule_files: readonly string[];
  evaluation_interval: string;
  tests: readonly PromtoolTest[];
}

interface Place {
  environment?: string;
  cluster: string;
  instance: string;
}
const reporting: Place = { cluster: 'dc1', instance: 'a' };
const beside: Place = { cluster: 'dc1', instance: 'b' };
const elsewhere: Place = { cluster: 'dc2', instance: 'c' };
/** Places with the same names in two environments. */
const production: Place = { environment: 'production', ...reporting };
const staging: Place = { environment: 'staging', ...reporting };

/** Series with the labels that a scrape gives them. */
function placed(series: Series, { environment, cluster, instance }: Place): Series {
  const whose = `${environment ? `environment="${environment}", ` : ''}cluster="${cluster}"`;
  const labels = `${whose}, instance="${instance}", pod="pod-${instance}"`;
  return Object.fromEntries(
    Object.entries(series).map(([key, values]) => [
      key.includes('{') ? key.replace('{', `{${labels}, `) : `${key}{${labels}}`,
      values,
    ]),
  );
}

function firing(plan: Plan, { instance, ...whose }: Place, value = plan.value): Firing {
  const own = { instance, ...(plan.instance === 'with pod' ? { pod: `pod-${instance}` } : {}) };
  return { labels: { ...plan.labels, ...whose, ...(plan.instance ? own : {}) }, value };
}

/** A case with everything that may come from its plan. */
type Case = Required<Extra>;

const silentOf = ({ at, silent = {} }: Plan | HandWritten): Case[] =>
  Object.entries(silent).map(([shows, series]) => ({ shows, series, at, fires: [] }));

/** The eight cases that every alert has, the cases for agents that differ and for series with a gap, then its own cases. */
function casesOf(plan: Plan, rule: RenderedAlert): Case[] {
  const { at, bad, good, edge, edgeAt = at, reset, ending = { afterMinutes: 20 } } = plan;
  const [hereBad, hereFiring] = [placed(bad, reporting), firing(plan, reporting)];
  const both = { ...hereBad, ...placed(bad, beside) };
  const twice = firing(plan, reporting, plan.twice ?? plan.value);
  const ended = Object.fromEntries(
    Object.entries(hereBad).map(([key, values]) => [key, until(values, plan)]),
  );
  return [
    { shows: 'healthy', series: placed(good, reporting), at, fires: [] },
    { shows: 'fires', series: hereBad, at, fires: [hereFiring] },
    { shows: 'exactly on the threshold', series: placed(edge, reporting), at: edgeAt, fires: [] },
    { shows: 'counter reset or interruption', series: placed(reset, reporting), at, fires: [] },
    {
      shows: 'series missing',
      series: ended,
      at: at + ending.afterMinutes,
      fires: ending.value === undefined ? [] : [firing(plan, reporting, ending.value)],
    },
    {
      shows: 'two clusters of which one fails',
      series: { ...hereBad, ...placed(good, elsewhere) },
      at,
      fires: [hereFiring],
    },
    {
      shows: 'two environments with the same names of which one fails',
      series: { ...placed(bad, production), ...placed(good, staging) },
      at,
      fires: [firing(plan, production)],
    },
    {
      shows: 'two agents that report the same',
      series: both,
      at,
      fires: plan.instance ? [hereFiring, firing(plan, beside)] : [twice],
    },
    ...(plan.agentsDiffer ? [disagreement(plan, hereFiring)] : []),
    ...(rule.keep_firing_for ? [gap(plan, ended, hereFiring)] : []),
    ...silentOf(plan),
    ...(plan.more ?? []).map(({ fires, ...of }) => ({
      ...{ at, ...of },
      fires: typeof fires === 'string' ? [firing(plan, reporting, fires)] : fires,
    })),
  ];
}

function disagreement({ at, bad, good, agentsDiffer }: Plan, here: Firing): Case {
  return {
    shows: 'two agents of which one reports success',
    series: { ...placed(bad, reporting), ...placed(good, beside) },
    at,
    fires: agentsDiffer === 'fires' ? [here] : [],
  };
}

/** The case of an agent that starts again, or of a missed scrape: neither ends an alert. */
const gap = ({ at }: Plan, ended: Series, here: Firing): Case => ({
  shows: 'the series is missing for some minutes',
  series: ended,
  at: at + 4,
  fires: [here],
});

/** The values up to the moment of the check, then the end of the series. */
function until(values: string, { at, every = 1 }: Plan): string {
  const whole = values.split(' ').flatMap((part) => samples(part));
  return `${whole.slice(0, at / every + 1).join(' ')} stale`;
}

/** The samples of one part of promtool's notation. */
function samples(part: string): string[] {
  const repeat = /^(.+?)(?:([+-][\d.e]+))?x(\d+)$/.exec(part);
  if (!repeat) return [part];
  const [, first = '', step, count] = repeat;
  const times = Number(count);
  if (first === '_') return Array.from({ length: times }, () => '_');
  return Array.from({ length: times + 1 }, (_, index) => String(Number(first) + index * Number(step ?? 0)));
}

/** The tests for one pack's plans with the rules as they are shipped. Throws if a plan belongs to no rule. */
export function promtoolFile(
  pack: Pack,
  plans: readonly (Plan | HandWritten)[],
  ruleFile: string,
  everyMinutes = 1,
): PromtoolFile {
  const rules = renderPack(pack, shippedOptions).groups.flatMap((group) => group.rules);
  const tests = plans.flatMap((plan) => {
    const rule = rules.find((candidate): candidate is RenderedAlert => isOf(candidate, plan));
    if (!rule) throw new Error(`a plan for ${plan.alert}, which pack ${pack.name} does not have`);
    if ('cases' in plan)
      return [...silentOf(plan), ...plan.cases].map((of) => promtoolTest(rule, { at: plan.at, ...of }, plan));
    const sibling = rules.find(
      (candidate): candidate is RenderedAlert =>
        plan.sibling !== undefined && isOf(candidate, { ...plan, ...plan.sibling }),
    );
    return casesOf(plan, rule).map((of) => {
      const fires = of.fires.length > 0 ? of.fires : [firing(plan, reporting)];
      const more = sibling && plan.sibling?.firesIn.has(of.shows) ? alertsOf(sibling, fires) : [];
      return promtoolTest(rule, of, plan, more);
    });
  });
  return { rule_files: [ruleFile], evaluation_interval: `${everyMinutes}m`, tests };
}

function isOf(rule: RenderedRule, { alert, ruleLabels = {} }: Plan | HandWritten): boolean {
  const has = ([label, value]: [string, string]) => 'labels' in rule && rule.labels[label] === value;
  return 'alert' in rule && rule.alert === alert && Object.entries(ruleLabels).every(has);
}

type Expected = PromtoolTest['alert_rule_test'][number]['exp_alerts'];

const alertsOf = (rule: RenderedAlert, fires: readonly Firing[]): Expected =>
  fires.map(({ labels, value }) => ({
    exp_labels: { ...labels, ...rule.labels },
    exp_annotations: Object.fromEntries(
      Object.entries(rule.annotations).map(([name, text]) => [name, filled(text, labels, value)]),
    ),
  }));

function promtoolTest(
  rule: RenderedAlert,
  of: Case,
  { ruleLabels, every = 1 }: Plan | HandWritten,
  ofSibling: Expected = [],
): PromtoolTest {
  const exp_alerts = [...alertsOf(rule, of.fires), ...ofSibling];
  return {
    name: `${rule.alert}${ruleLabels ? ` ${Object.values(ruleLabels).join(' ')}` : ''}: ${of.shows}`,
    interval: `${every}m`,
    input_series: Object.entries(of.series).map(([series, values]) => ({ series, values })),
    alert_rule_test: [{ eval_time: `${of.at}m`, alertname: rule.alert, exp_alerts }],
  };
}

/** A template filled with labels and a value; a pipe after the value is ignored. */
function filled(template: string, labels: Readonly<Record<string, string>>, value: string): string {
  return template
    .replace(/{{ with \$labels\.(\w+) }}(.*?){{ end }}/g, (_, label: string, text: string) =>
      labels[label] ? text.replace('{{ . }}', labels[label]) : '',
    )
    .replace(/{{ \$labels\.(\w+) }}/g, (_, label: string) => labels[label] ?? '')
    .replace(/{{ \$value[^}]*}}/g, value);
}
