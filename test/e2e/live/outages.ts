import { critical, type Expected, warning } from './fault.ts';
import type { Stage } from './stage.ts';

/** An outage that explains many of the alerts that follow. */
interface Outage {
  what: string;
  begin(stage: Stage): unknown;
  /** The alert that notifies. */
  told: Expected;
  /** Causes the effects of the outage, once the alert has notified. */
  suffer(stage: Stage): unknown;
  explained: readonly Expected[];
  end(stage: Stage): unknown;
  /** The alert on the end. */
  recovering: { alert: string; windows: readonly string[] };
  /** Whether one of the explained alerts has a window, and continues for some seconds. */
  looksBack: boolean;
}

const dc1 = { cluster: 'dc1' };
const history = { ...dc1, svc_service: 'history' };
const main = { store: 'main', kind: 'postgres', database: 'persistence' };
const burn = (window: string): Expected => ({
  ...critical('SvcFrontendAvailabilityBurn', { ...dc1, window }, /./),
  pack: 'slo',
});

export const outages: readonly Outage[] = [
  {
    what: 'the store is stopped and started',
    begin: ({ store }) => store.halt(),
    told: critical('SvcStoreDown', { ...dc1, ...main }, /./),
    suffer({ service }) {
      service.storeErrors.rise(1000);
      service.storeCalls.flow(2000, 4);
      service.frontendErrors.rise(15);
      service.roles.history.feel(false, 'persistence is unavailable');
    },
    explained: [
      critical('SvcPersistenceErrorRate', history, /./),
      warning('SvcPersistenceErrorRatio', history, /./),
      warning('SvcPersistenceLatency', { ...history, operation: 'UpdateWorkflowExecution' }, /./),
      warning('SvcHealthFailing', { ...history, instance: 'first', reason: 'persistence' }, /./),
      warning('SvcRequestErrors', { ...dc1, svc_service: 'frontend', callee: 'frontend' }, /./),
      burn('1h'),
      burn('6h'),
    ],
    async end({ store, service }) {
      await store.begin();
      service.storeErrors.rise(0);
      service.storeCalls.flow(2000, 0.01);
      service.frontendErrors.rise(0);
      service.roles.history.feel(true);
    },
    recovering: { alert: 'SvcStoreRecovering', windows: ['5m', '30m'] },
    looksBack: true,
  },
  {
    what: 'matching ends and starts again',
    begin({ service }) {
      service.roles.matching.serve(false);
      service.roles.matching.feel(false);
    },
    told: critical('SvcServiceDown', { ...dc1, job: 'matching', svc_service: 'matching' }, /./),
    suffer: ({ service }) => service.frontendErrors.rise(15),
    explained: [
      critical('SvcRoleUnhealthy', { ...dc1, svc_service: 'matching', reason: 'not_ok' }, /./),
      warning(
        'SvcHealthFailing',
        { ...dc1, svc_service: 'matching', instance: 'first', reason: 'not_ok' },
        /./,
      ),
      warning('SvcRequestErrors', { ...dc1, svc_service: 'frontend', callee: 'frontend' }, /./),
      burn('1h'),
      burn('6h'),
    ],
    end({ service }) {
      service.roles.matching.serve(true);
      service.roles.matching.feel(true);
      service.frontendErrors.rise(0);
    },
    recovering: { alert: 'SvcServiceRecovering', windows: ['5m', '30m'] },
    looksBack: true,
  },
  {
    what: 'matching fails its health check',
    begin: ({ service }) => service.roles.matching.feel(false),
    told: critical('SvcRoleUnhealthy', { ...dc1, svc_service: 'matching', reason: 'not_ok' }, /./),
    suffer() {},
    explained: [
      warning(
        'SvcHealthFailing',
        { ...dc1, svc_service: 'matching', instance: 'first', reason: 'not_ok' },
        /./,
      ),
    ],
    end: ({ service }) => service.roles.matching.feel(true),
    recovering: { alert: 'SvcRoleRecovering', windows: ['5m'] },
    looksBack: false,
  },
  {
    what: 'dc2 cannot be reached for a while, and dc1 has to catch up',
    begin: ({ frontends }) => frontends.dc2.shut(),
    told: critical('SvcClusterUnreachable', { ...dc1, remote_cluster: 'dc2' }, /./),
    suffer({ service }) {
      service.replicationLag.set(400);
      service.replicationFailures.rise(50);
    },
    explained: [
      critical('SvcReplicationLag', { ...dc1, source_cluster: 'dc2', target_cluster: 'dc1' }, /./),
      warning('SvcReplicationTaskFailures', { ...dc1, source_cluster: 'dc2', target_cluster: 'dc1' }, /./),
    ],
    async end({ frontends, service }) {
      await frontends.dc2.open();
      service.replicationLag.set(1);
      service.replicationFailures.rise(0);
    },
    recovering: { alert: 'SvcClusterRecovering', windows: ['5m'] },
    looksBack: true,
  },
  {
    what: 'the only agent of dc3 is killed and started',
    begin: ({ agents }) => agents.lone.kill(),
    told: critical('SvcRoleUnwatched', { cluster: 'dc3', job: 'frontend' }, /./),
    suffer() {},
    explained: [warning('SvcAgentDown', { cluster: 'dc3', job: 'svc-agent', instance: 'lone' }, /./)],
    end: ({ agents }) => agents.lone.restart(),
    recovering: { alert: 'SvcAgentsRecovering', windows: ['5m'] },
    looksBack: false,
  },
];
