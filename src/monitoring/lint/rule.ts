import type { Expr } from '../promql/ast.ts';
import type { PackName } from '../rules/alert.ts';
import type { RenderedRule } from '../rules/render.ts';

/** One rule and what a lint may want to know around it. */
export interface Subject {
  rule: RenderedRule;
  expr: Expr;
  pack: PackName;
  /** Names that recording rules give. */
  recorded: ReadonlySet<string>;
}

/** One lint: its name, and what is wrong with a subject; nothing if it is well. */
export interface Lint {
  name: string;
  faults(subject: Subject): readonly string[];
}

export interface Finding {
  lint: string;
  /** Alert or recorded series. */
  rule: string;
  fault: string;
}
