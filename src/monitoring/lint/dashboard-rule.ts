import type { DashboardJson, PanelJson, TargetJson } from '../dashboards/json.ts';
import type { Expr } from '../promql/ast.ts';

export interface DashboardFinding {
  lint: string;
  /** Title of the panel or name of the variable; the dashboard itself has none. */
  place: string;
  fault: string;
}

/** One query of a panel, with all that a lint may want to know around it. */
export interface TargetSubject {
  dashboard: DashboardJson;
  panel: PanelJson;
  target: TargetJson;
  /** Grafana's spans replaced by others of the same length. */
  expr: Expr;
  /** Names of series that the catalogs do not have. */
  recorded: ReadonlySet<string>;
}

type Faults = readonly string[];

/** Lints by what they look at; each gives what is wrong, nothing if it is well. */
export interface DashboardLint {
  name: string;
  dashboard?(of: DashboardJson): Faults;
  panel?(of: PanelJson): Faults;
  target?(subject: TargetSubject): Faults;
  /** A query in any language, before it is parsed. */
  text?(target: TargetJson): Faults;
}

/** A fault if it is one. */
export const unless = (isWell: boolean, fault: string): Faults => (isWell ? [] : [fault]);
