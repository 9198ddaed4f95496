import { resultLabels } from '../promql/labels.ts';
import { parse } from '../promql/parse.ts';
import { parseable } from './fill.ts';

/** Labels of an expression's result, in the order of its aggregation. Throws where PromQL alone cannot say. */
function labelsOf(expr: string): readonly string[] {
  const found = resultLabels(parse(parseable(expr)));
  if (found.type === 'fixed') return [...found.labels];
  throw new Error(`aggregate, so that it is known which labels there are: ${expr}`);
}

/** What stands beside a line: the query's name and every label that tells its series apart. */
export function legendOf(expr: string, name?: string): string {
  const labels = labelsOf(expr).map((label) => `{{${label}}}`);
  return [...(name ? [name] : []), ...labels].join(' ');
}
