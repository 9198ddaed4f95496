import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from './unit/house/imports.ts';

interface Inhibition {
  source_matchers: string[];
  target_matchers: string[];
  equal: string[];
}

export interface Route {
  matchers?: string[];
  receiver?: string;
  group_by?: string[];
  routes?: Route[];
}

/** The routes and inhibitions of the shipped Alertmanager configuration. */
export const { route, inhibit_rules: inhibitions } = parse(
  readFileSync(join(root, 'deploy/alertmanager/alertmanager.yml'), 'utf8'),
) as { route: Route; inhibit_rules: readonly Inhibition[] };
