import type { Plan, Series } from './plan.ts';
import { series, state } from './state.ts';

const at = 'cluster="dc1", instance="a"';

/** Of src/monitoring/rules/alerts/archival.ts. */
export const archivalPlans: readonly Plan[] = [
  state('SvcArchiveDown', series('svc_archival_up', 'archive="history", scheme="file"'), 10, {
    archive: 'history',
    scheme: 'file',
  }),
  {
    alert: 'SvcArchivalStalled',
    at: 130,
    bad: archived('-90000x200', '0+60x200'),
    good: archived('0x200', '0+60x200'),
    edge: archived('-86400+60x200', '0+60x200'),
    reset: archived('-90000x99 5000 -90000x99', '0+60x200'),
    agentsDiffer: 'is silent',
    labels: { archive: 'history', scheme: 'file' },
    value: '1d 3h 10m 0s',
    more: [
      {
        shows: 'nothing completes, so that nothing is there to archive',
        series: {
          [`svc_archival_newest_object_timestamp_seconds{${at}, archive="history", scheme="file"}`]:
            '-90000x200',
          [`svc_workflow_completed{${at}, domain="orders"}`]: '70x200',
        },
        at: 130,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcArchivalOff',
    at: 25,
    bad: archivalOf('0x60'),
    good: archivalOf('1x60'),
    edge: archivalOf('1x15 0x60'),
    reset: archivalOf('0x20 1 0x60'),
    agentsDiffer: 'is silent',
    labels: { domain: 'orders', archive: 'history' },
    value: '0',
    more: [
      {
        shows: 'an archive that the defaults do not have',
        series: { [`svc_domain_archival_enabled{${at}, domain="orders", archive="visibility"}`]: '0x60' },
        at: 25,
        fires: [],
      },
    ],
  },
];

function archived(newest: string, completed: string): Series {
  return {
    'svc_archival_newest_object_timestamp_seconds{archive="history", scheme="file"}': newest,
    'svc_workflow_completed{domain="orders"}': completed,
  };
}

function archivalOf(enabled: string): Series {
  return {
    'svc_domain_archival_enabled{domain="orders", archive="history"}': enabled,
    'svc_archival_up{archive="history", scheme="file"}': '1x60',
  };
}
