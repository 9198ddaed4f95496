import { errorText } from '../../core/errors.ts';
import { parse } from '../promql/parse.ts';
import type { PackName } from '../rules/alert.ts';
import type { RenderedRule, RuleFile } from '../rules/render.ts';
import type { Finding } from './rule.ts';
import { ruleLints } from './rules.ts';
import { seriesLints } from './series.ts';
import { shapeLints } from './shape.ts';

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
