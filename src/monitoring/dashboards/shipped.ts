import { allDashboards } from './all.ts';
import { renderDashboard } from './render.ts';

/** Every generated dashboard: its path in the project, and its text. */
export function dashboardFiles(): readonly (readonly [path: string, text: string])[] {
  return allDashboards.map((of) => [
    `dashboards/${of.name}.json`,
    `${JSON.stringify(renderDashboard(of), null, 2)}\n`,
  ]);
}
