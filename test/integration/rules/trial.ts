import type { PackName } from '../../../src/monitoring/alert.ts';
import {
  alertsOf,
  pack,
  type RenderedAlert,
  renderPack,
  shippedOptions,
} from '../../../src/monitoring/packs.ts';
import { promtoolFile } from '../../../tools/cases/promtool.ts';
import { tests } from '../../../tools/shipped.ts';
import { bySize } from '../../size.ts';
import { isEquivalent } from './equivalent.ts';
import { type Mutant, mutantsOf } from './mutants.ts';
import { promtoolOver } from './promtool.ts';

/** Every alert with its plan. */
export const rows = tests.flatMap(([, plans, name, everyMinutes]) =>
  plans.map((plan) => {
    const window = plan.ruleLabels?.window;
    return { title: `${name} ${plan.alert}${window ? ` ${window}` : ''}`, plan, name, everyMinutes };
  }),
);

interface Named extends Mutant {
  alert: string;
}

/** promtool's result for a rule and its mutants. */
interface Verdict {
  /** The differences between the rule and its plan; empty if there are none. */
  faults: string;
  /** Mutants that no case noticed. */
  survivors: readonly string[];
}

function ruleOf({ plan, name }: (typeof rows)[number]): RenderedAlert {
  const rules = renderPack(pack(name), shippedOptions).groups.flatMap((group) => group.rules);
  return rules.find(
    (rule): rule is RenderedAlert =>
      'alert' in rule &&
      rule.alert === plan.alert &&
      (!plan.ruleLabels || rule.labels.window === plan.ruleLabels.window),
  )!;
}

/** The rule, together with the rules that have its name and other labels. */
const namesakesOf = (name: PackName, { alert }: RenderedAlert): RenderedAlert[] =>
  renderPack(pack(name), shippedOptions)
    .groups.flatMap((group) => group.rules)
    .filter((rule): rule is RenderedAlert => 'alert' in rule && rule.alert === alert);

/** The recorded series that a rule reads, directly or indirectly, in the order of the pack. */
function recordsOf(name: PackName, rule: RenderedAlert) {
  const all = renderPack(pack(name), shippedOptions)
    .groups.flatMap((group) => group.rules)
    .filter((each) => 'record' in each);
  const read = new Set<string>();
  const follow = (expr: string): void => {
    for (const { record, expr: of } of all)
      if (!read.has(record) && expr.includes(record)) {
        read.add(record);
        follow(of);
      }
  };
  follow(rule.expr);
  return all.filter(({ record }) => read.has(record));
}

/** Runs the rule under its own name and each mutant under a separate name, all in the same cases. */
async function run(
  { plan, name, everyMinutes }: (typeof rows)[number],
  rule: RenderedAlert,
  mutants: readonly Named[],
) {
  const file = promtoolFile(pack(name), [plan], 'rules.yml', everyMinutes);
  // promtool compares all alerts with one name; a mutant has a separate name, without the rule's siblings.
  const alone = promtoolFile(pack(name), [{ ...plan, sibling: undefined }], 'rules.yml', everyMinutes);
  const mutated = mutants.map(({ alert, expr }) => ({ ...rule, alert, expr }));
  const cases = file.tests.map((of, index) => ({
    ...of,
    alert_rule_test: [
      of.alert_rule_test[0]!,
      ...mutated.map(({ alert }) => ({ ...alone.tests[index]!.alert_rule_test[0]!, alertname: alert })),
    ],
  }));
  const groups = [
    { name: 'records', rules: recordsOf(name, rule) },
    { name: 'alerts', rules: [...namesakesOf(name, rule), ...mutated] },
  ];
  const documents = { 'rules.yml': { groups }, 'test.yml': { ...file, tests: cases } };
  const { output } = await promtoolOver(documents, 'test', 'rules', 'test.yml');
  const namesIn = (pattern: RegExp) => new Set([...output.matchAll(pattern)].map(([, found]) => found!));
  return {
    output,
    failed: namesIn(/^\s+alertname: (\w+), time:/gm),
    /** Rules that could not be evaluated; promtool then skips the rest of the case. */
    broken: namesIn(/^\s+rule: (\w+), time: \w+, err:/gm),
  };
}

/**
 * Whether rules are mutated, which takes minutes of promtool, in `npm run nightly`. Otherwise only the rules themselves are
 * tried.
 */
export const areMutated = bySize({ short: false, long: false, nightly: true });

/** Tries a rule and its mutants. A mutant that cannot be evaluated is noticed, and the others are tried again. */
export async function tried(row: (typeof rows)[number]): Promise<Verdict> {
  const rule = ruleOf(row);
  const threshold = alertsOf(pack(row.name)).find(({ name }) => name === rule.alert)?.threshold;
  let mutants = (areMutated ? mutantsOf(rule.expr, threshold) : [])
    .filter(({ what }) => !isEquivalent(rule.alert, what))
    .map((mutant, index): Named => ({ ...mutant, alert: `${rule.alert}_${index}` }));
  for (;;) {
    const { output, failed, broken } = await run(row, rule, mutants);
    const isWell = !failed.has(rule.alert) && !broken.has(rule.alert) && /FAILED:|SUCCESS/.test(output);
    if (!isWell) return { faults: output, survivors: [] };
    if (broken.size === 0) {
      const survivors = mutants.filter(({ alert }) => !failed.has(alert));
      return { faults: '', survivors: survivors.map(({ what, expr }) => `${what}: ${expr}`) };
    }
    mutants = mutants.filter(({ alert }) => !broken.has(alert));
  }
}
