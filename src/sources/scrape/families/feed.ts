import type { Part } from '../../../core/model.ts';
import type { Assembly } from './assemble.ts';

/** One line that feeds two numbers: a count that stands for a missing `+Inf` bucket. */
export function both(one: Part, other: Part): Part {
  return {
    set(value) {
      one.set(value);
      other.set(value);
    },
  };
}

/** What must stay the same for a series to keep its place in the registry; its name and labels do by its key. */
export function signatureOf({ kind, shape }: Assembly): string {
  if (kind !== 'histogram' && kind !== 'summary') return kind;
  const { boundTexts, quantiles, hasSum, hasCount } = shape;
  return [kind, hasSum, hasCount, ...(boundTexts ?? quantiles ?? [])].join(' ');
}
