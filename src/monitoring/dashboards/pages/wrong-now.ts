import { at } from '../alerts.ts';
import { highest, howMany, rate } from '../expr.ts';
import type { Row } from '../model.ts';
import { column, stat, table, timeline } from '../panels.ts';

const firing = 'ALERTS{alertstate="firing", alertname=~"Svc.+"}';
const firingOf = (severity: string) =>
  `count by (cluster) (ALERTS{alertstate="firing", alertname=~"Svc.+", severity="${severity}"})` +
  ' or 0 * max by (cluster) (svc_agent_build_info)';
const what =
  'alertname, severity, svc_service, job, instance, store, database, domain, backup, remote_cluster';
/** What a rule of the spec takes away is no loss. */
const losses = rate('svc_agent_dropped_total{reason!~"forbidden_tag|forbidden_value"}');

/** What somebody who was woken looks at first. */
export const wrongNow: Row = {
  title: 'What is wrong',
  panels: [
    stat('Critical alerts', 'Alerts that wake somebody. 0 is good.', 'count', firingOf('critical'), {
      anyIs: 'red',
    }),
    stat('Warnings', 'Alerts that make a ticket. 0 is good.', 'count', firingOf('warning'), {
      anyIs: 'orange',
    }),
    stat(
      'Roles that fail',
      'Instances of roles whose health check fails.',
      'count',
      howMany('svc_role_up', 'svc_service, instance', '== 0'),
      { anyIs: 'red', runbooks: ['SvcHealthFailing'] },
    ),
    stat(
      'Stores down',
      'Databases of stores that do not answer.',
      'count',
      howMany('svc_store_up', 'store, kind, database', '== 0'),
      { anyIs: 'red', runbooks: ['SvcStoreDown'] },
    ),
    stat(
      'Not recoverable',
      'Databases that could not be brought back within their objectives, by the evidence at hand.',
      'count',
      howMany('svc_recovery_ready', 'store, database', '== 0'),
      { anyIs: 'red', runbooks: ['SvcRecoveryObjectiveMissed'] },
    ),
    stat(
      'Agents drop',
      'What the agents drop per second, whatever the reason. While it is not 0, numbers may be too low.',
      'perSecond',
      losses,
      { limits: at('SvcAgentDropping') },
    ),
    table(
      'Firing alerts',
      'What fires now and since when its condition holds. The name leads to the runbook.',
      {
        severity: 'Severity',
        alertname: 'Alert',
        cluster: 'Cluster',
        svc_service: 'Role',
        job: 'Job',
        instance: 'Instance',
        store: 'Store',
        database: 'Database',
        domain: 'Domain',
        backup: 'Backup',
        remote_cluster: 'Remote cluster',
      },
      [
        column(
          'For',
          'duration',
          `(time() - ${highest('ALERTS_FOR_STATE{alertname=~"Svc.+"}', what)}) and ${highest(firing, what)}`,
        ),
      ],
      { width: 14, height: 9, linkedLabel: 'alertname', sortBy: 'For' },
    ),
    timeline(
      'Health of the roles',
      'What the health check of each instance says.',
      'up',
      highest('svc_role_up', 'svc_service, instance'),
      { width: 10, height: 9, runbooks: ['SvcHealthFailing', 'SvcServiceDown', 'SvcInstanceDown'] },
    ),
  ],
};
