import { dashboards } from '../src/monitoring/alert.ts';
import { renderDashboard, shippedDashboardOptions } from '../src/monitoring/dashboards/render.ts';
import { pack, packs, renderPack, shippedOptions } from '../src/monitoring/packs.ts';
import { listOf, prometheusRule, toYaml } from '../src/monitoring/yaml.ts';
import { agentPlans, incidentPlans } from './cases/agent.ts';
import { archivalPlans, replicationPlans, weekLongPlans } from './cases/clusters.ts';
import { promtoolFile } from './cases/promtool.ts';
import { recordingTests } from './cases/recordings.ts';
import { recoveringPlans } from './cases/recovering.ts';
import { backupPlans, dayLongPlans, storePlans } from './cases/recovery.ts';
import { requestPlans } from './cases/requests.ts';
import { availabilityPlans, processPlans } from './cases/roles.ts';
import { sloPlans } from './cases/slo.ts';
import { specPlans } from './cases/spec.ts';
import { persistencePlans, taskPlans } from './cases/work.ts';
import { historyPlans, workflowPlans } from './cases/workflows.ts';

/** The promtool test files: name, plans, pack, and the evaluation interval in minutes. */
export const tests = [
  ['spec', specPlans, 'spec', 1],
  ['availability', availabilityPlans, 'recommended', 1],
  ['process', processPlans, 'recommended', 1],
  ['persistence', persistencePlans, 'recommended', 1],
  ['tasks', taskPlans, 'recommended', 1],
  ['workflows', workflowPlans, 'recommended', 1],
  ['history', historyPlans, 'recommended', 1],
  ['requests', requestPlans, 'recommended', 1],
  ['backups', backupPlans, 'recommended', 1],
  ['day-long', dayLongPlans, 'recommended', 5],
  ['week-long', weekLongPlans, 'recommended', 10],
  ['stores', storePlans, 'recommended', 1],
  ['recovering', recoveringPlans, 'recommended', 1],
  ['replication', replicationPlans, 'recommended', 1],
  ['archival', archivalPlans, 'recommended', 1],
  ['agent', agentPlans, 'recommended', 1],
  ['incidents', incidentPlans, 'recommended', 1],
  ['slo', sloPlans, 'slo', 1],
] as const;

/** A generated file: its path in the project, and its text. */
type Generated = readonly [path: string, text: string];

/** The rule files, with their texts. */
export const ruleFiles = (): readonly Generated[] =>
  packs.map((of) => [`rules/${of.name}.rules.yml`, toYaml(renderPack(of, shippedOptions))]);

/** The cases of `promtool test rules`, which are run together with the rules. They are not committed. */
export const caseFiles = (): readonly Generated[] => [
  ...tests.map(
    ([name, plans, of]): Generated => [
      `rules/tests/${name}.test.yml`,
      toYaml(promtoolFile(pack(of), plans, `../${of}.rules.yml`)),
    ],
  ),
  ['rules/tests/recording.test.yml', toYaml(recordingTests('../recording.rules.yml'))],
];

/** The rules in the Kubernetes manifests, as `svc-agent rules --kubernetes` prints these packs. */
export function deployedRules(): Generated {
  const objects = (['recommended', 'recording', 'slo'] as const).map((name) =>
    prometheusRule(name, renderPack(pack(name), shippedOptions)),
  );
  return ['deploy/kubernetes/monitoring/rules.yaml', toYaml(listOf(objects))];
}

/** The dashboard files, with their texts. */
export function dashboardFiles(): readonly Generated[] {
  return dashboards.map((name) => [
    `dashboards/${name}.json`,
    `${JSON.stringify(renderDashboard(name, shippedDashboardOptions), null, 2)}\n`,
  ]);
}
