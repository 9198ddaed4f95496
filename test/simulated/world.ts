import { closeSync, openSync, writeSync } from 'node:fs';
import { agentSeries } from './agents.ts';
import { linesOf, type Simulated, type Tags } from './series.ts';
import { serviceSeries } from './service.ts';
import { momentOf, wave } from './time.ts';

const roles = ['frontend', 'history', 'matching', 'worker'];
const clusters = [
  { cluster: 'dc1', other: 'dc2' },
  { cluster: 'dc2', other: 'dc1' },
];

/** Alerts that fire in the last minutes, with the minute when they began. */
const alerts: readonly (readonly [name: string, severity: string, since: number, tags: Tags])[] = [
  ['SvcBackupAge', 'critical', 2, { backup: 'main-full', store: 'main', database: 'persistence' }],
  ['SvcRecoveryObjectiveMissed', 'critical', 4, { store: 'main', database: 'persistence' }],
  ['SvcReplicationLag', 'critical', 44, { source_cluster: 'dc2', target_cluster: 'dc1' }],
  ['SvcHeapMemory', 'warning', 38, { svc_service: 'matching', instance: 'dc1-a:9464' }],
  ['SvcStoreRecoveryWeak', 'warning', 1, { store: 'main', database: 'persistence' }],
];

function alertSeries(): Simulated[] {
  return alerts.flatMap(([alertname, severity, since, tags]) => {
    const own = { alertname, severity, pack: 'recommended', cluster: 'dc1', ...tags };
    const from = (value: number) => (minute: number) => (minute >= since ? value : undefined);
    return [
      { name: 'ALERTS', tags: { ...own, alertstate: 'firing' }, gauge: from(1) },
      { name: 'ALERTS_FOR_STATE', tags: own, gauge: from(momentOf(since)) },
    ];
  });
}

/** The series of rules/slo.rules.yml, as far as dashboards show them. */
function objectiveSeries(cluster: string): Simulated[] {
  return ['1h', '6h', '1d', '3d'].flatMap((window) =>
    [
      ['svc_frontend_errors', 0.004],
      ['svc_frontend_slow', 0.02],
    ].map(([name, usual]) => ({
      name: `slo:${name}:ratio_rate${window}`,
      tags: { cluster },
      gauge: (minute: number) => Number(usual) * wave(`${cluster}${name}${window}`, minute),
    })),
  );
}

/** Far more task lists than a panel can show. */
function crowd(count: number): Simulated[] {
  const instance = 'dc2-a:9464';
  return Array.from({ length: count }, (_, index) => ({
    cluster: 'dc2',
    job: 'matching',
    instance,
    svc_service: 'matching',
    domain: 'crowd',
    tasklist: `list-${index}`,
  })).flatMap((tags) => [
    { name: 'svc_matching_tasklist_backlog', tags, gauge: (at: number) => 3 * wave(tags.tasklist, at) },
    ...['tasks_added', 'tasks_dispatched', 'poll_success', 'poll_timeout'].map((what) => ({
      name: `svc_matching_${what}`,
      tags,
      perSecond: () => 0.5,
    })),
  ]);
}

/** Two clusters of two hosts, each with four roles and an agent; dc1 is ill, and one of its hosts vanishes. */
function hosts(): Simulated[] {
  return clusters.flatMap(({ cluster, other }) =>
    ['a', 'b'].flatMap((letter) => {
      const instance = `${cluster}-${letter}:9464`;
      const endsAt = instance === 'dc1-b:9464' ? 50 : undefined;
      const up = (role: string): Simulated => ({
        name: 'up',
        tags: { cluster, job: role, instance },
        gauge: (minute) =>
          instance === 'dc1-a:9464' && role === 'history' && minute > 24.5 && minute < 27 ? 0 : 1,
      });
      return [
        ...roles.flatMap((role) => [up(role), ...serviceSeries({ cluster, role, instance })]),
        ...agentSeries({ cluster, other, instance }),
      ].map((series) => ({ ...series, endsAt }));
    }),
  );
}

/** Writes the simulated hour as OpenMetrics, with `crowdSize` task lists in addition to the usual ones. */
export function writeWorld(file: string, crowdSize = 0): void {
  const to = openSync(file, 'w');
  try {
    const all = [
      ...hosts(),
      ...alertSeries(),
      ...['dc1', 'dc2'].flatMap(objectiveSeries),
      ...crowd(crowdSize),
    ];
    for (const series of all) writeSync(to, linesOf(series));
    writeSync(to, '# EOF\n');
  } finally {
    closeSync(to);
  }
}
