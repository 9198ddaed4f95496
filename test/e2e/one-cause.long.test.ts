import { beforeAll, describe, expect, test } from 'vitest';
import { hasPostgres } from '../postgres.ts';
import { stopsAtEnd } from '../test-end.ts';
import { hasAlertmanager, type Notice } from './alertmanager.ts';
import { frontendCallsPerSecond, tasksPerSecond, workflowsPerSecond } from './live/service.ts';
import { type Stage, startStage } from './live/stage.ts';
import { type Watch, watchOn } from './live/watch.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * One cause is one page, and nothing is sent once all is well: the built agents, a real Prometheus with the shipped rules, a real
 * Alertmanager with the shipped routes and inhibitions. All times of both are divided by 30. The effects on the service begin at
 * the same moment as their cause, so that every alert races the one that explains it.
 */

const withinMs = 180_000;

describe.skipIf(!hasPrometheus || !hasAlertmanager || !hasPostgres)('one cause', () => {
  const stops = stopsAtEnd();
  let stage: Stage;
  let watch: Watch;
  beforeAll(async () => {
    stage = await startStage((stop) => stops.push(stop), { forSeconds: 'cut' });
    watch = watchOn(stage);
    await watch.wait('all is seen', () => stage.isSeen(), performance.now() + 5 * withinMs);
  }, 6 * withinMs);

  /** A scene that failed may have left a service that is not well. */
  const recover = async () => {
    await findStore(stage);
    stage.service.roles.frontend.certify(stage.service.certificates.long);
    for (const role of healths) stage.service.roles[role].die(false);
    stage.service.roles.matching.serve(true);
    await quiet();
  };
  const scene = (what: string, play: () => Promise<void>) =>
    test(what, { timeout: 20 * withinMs }, () =>
      watch.play(async () => {
        await recover();
        await play();
      }),
    );

  const wait = <T>(what: string, fact: () => Promise<T | undefined> | T | undefined) =>
    watch.wait(what, fact, performance.now() + withinMs);
  const firing = async () =>
    (await stage.prometheus.firing()).filter(
      ({ severity, cluster }) => severity !== 'info' && cluster === 'dc1',
    );
  const quiet = () =>
    wait('nothing fires', async () => {
      const left = await firing();
      if (left.length > 0) throw new Error(JSON.stringify(left.map(({ alertname }) => alertname)));
      return true;
    });
  /** Alerts that fire and that Alertmanager inhibits. */
  const heldBack = async () => {
    const held = await stage.alertmanager.held();
    return new Set(
      held
        .filter(({ labels, status }) => labels.cluster === 'dc1' && status.state === 'suppressed')
        .map(({ labels }) => labels.alertname!),
    );
  };
  /** The notices that ask somebody to act, after this many notices. */
  const told = (since: number): string[] =>
    stage.alertmanager.notices
      .slice(since)
      .filter((notice) => notice.status === 'firing' && notice.receiver !== 'log-book')
      .filter(({ labels }) => labels.cluster === 'dc1')
      .map(nameOf);
  /** Waits for a notice about dc1 for the record, after this many notices. */
  const noted = (since: number, labels: Notice['labels']) =>
    wait(`${JSON.stringify(labels)} is noted`, () =>
      stage.alertmanager.notices
        .slice(since)
        .find(
          (notice) =>
            notice.receiver === 'log-book' &&
            Object.entries({ ...labels, cluster: 'dc1' }).every(
              ([name, value]) => notice.labels[name] === value,
            ),
        ),
    );
  const nameOf = ({ labels: { alertname, svc_service: role } }: Notice): string =>
    `${alertname}${role ? ` ${role}` : ''}`;

  const domains = ['orders', 'payments', 'shipping'];
  const healths = ['frontend', 'history', 'matching', 'worker', 'second history', 'second worker'] as const;

  const loseStore = async ({ service, storeGates }: Stage) => {
    await storeGates.dc1.shut();
    for (const role of healths) service.roles[role].feel(false, 'persistence is unavailable');
    service.storeErrors.rise(1000);
    service.storeCalls.flow(2000, 4);
    service.frontendErrors.rise(frontendCallsPerSecond);
    service.frontendCalls.flow(frontendCallsPerSecond, 2);
    service.stalledBacklog.set(50);
    service.stalledDispatch.rise(0);
    service.unpolledBacklog.set(30);
    service.pollers.set(0);
    service.canary.rise(0);
    for (const meter of timeouts) meter.rise(500);
  };
  const findStore = async ({ service, storeGates }: Stage, but: readonly (typeof healths)[number][] = []) => {
    await storeGates.dc1.open();
    for (const role of healths) if (!but.includes(role)) service.roles[role].feel(true);
    service.storeErrors.rise(0);
    service.storeCalls.flow(2000, 0.01);
    service.frontendErrors.rise(0);
    service.frontendCalls.flow(frontendCallsPerSecond, 0.01);
    service.stalledBacklog.set(0);
    service.stalledDispatch.rise(tasksPerSecond);
    service.unpolledBacklog.set(0);
    service.pollers.set(2);
    service.canary.rise(workflowsPerSecond);
    for (const meter of timeouts) meter.rise(0);
  };
  let timeouts: { rise(perSecond: number): void }[] = [];
  beforeAll(() => {
    const { page } = stage.service.roles.history;
    timeouts = domains.map((domain) =>
      page.counter('svc_workflow_timeout', { domain, workflow_type: 'late' }),
    );
  });

  /** The effects of a store's outage, as alerts. */
  const consequences = [
    ...['SvcRoleUnhealthy', 'SvcPersistenceErrorRate', 'SvcPersistenceErrorRatio', 'SvcPersistenceLatency'],
    ...['SvcRequestErrors', 'SvcFrontendLatency', 'SvcTaskListStalled', 'SvcTaskListUnpolled'],
    ...['SvcWorkflowTimeouts', 'SvcWorkflowTimeoutShare', 'SvcCanaryFailing'],
  ];
  const allHeldBack = () =>
    wait('the consequences are held back', async () => {
      const held = await heldBack();
      const missing = consequences.filter((name) => !held.has(name));
      if (missing.length > 0) throw new Error(missing.join(' '));
      return true;
    });

  scene('a store takes down four roles and three domains: one page, and nothing after its end', async () => {
    const since = stage.alertmanager.notices.length;
    await loseStore(stage);
    await wait('the page', () => told(since).length > 0);
    await allHeldBack();
    expect(told(since)).toEqual(['SvcStoreDown']);
    // There is no label of the store as long as an earlier scraped page says that the store is up.
    await noted(since, { alertname: 'SvcIncident', cause: 'store_down', store: 'main' });
    // The second hosts of history and worker have an agent that does not watch the store.
    for (const role of ['frontend', 'matching'])
      await noted(since, { alertname: 'SvcRoleExplained', svc_service: role });

    const before = stage.alertmanager.notices.length;
    await findStore(stage);
    await quiet();
    expect(told(before)).toEqual([]);
    const isOver = () =>
      stage.alertmanager.notices
        .slice(before)
        .some((notice) => notice.status === 'resolved' && nameOf(notice) === 'SvcStoreDown');
    await wait('the end is told', () => isOver());
  });

  scene('a role with a fault of its own during the outage of the store: a second page, at once', async () => {
    const { service } = stage;
    const since = stage.alertmanager.notices.length;
    await loseStore(stage);
    await wait('the first page', () => told(since).includes('SvcStoreDown'));
    // The fault of an untrusted certificate is not the store's.
    service.roles.frontend.certify(service.untrusted);
    await wait('the second page', () => told(since).includes('SvcRoleUnhealthy frontend'));
    await allHeldBack();
    expect(told(since)).toEqual(['SvcStoreDown', 'SvcRoleUnhealthy frontend']);

    const before = stage.alertmanager.notices.length;
    await findStore(stage);
    await wait('the store is over', async () =>
      (await firing()).every(({ alertname }) => alertname !== 'SvcStoreDown'),
    );
    service.roles.frontend.certify(service.certificates.long);
    await quiet();
    expect(told(before)).toEqual([]);
  });

  scene('a role that is not well when the store is: it pages once nothing explains it', async () => {
    const { service } = stage;
    const since = stage.alertmanager.notices.length;
    await loseStore(stage);
    await wait('the first page', () => told(since).includes('SvcStoreDown'));
    await allHeldBack();
    service.roles.matching.feel(false, 'shards are lost');
    await findStore(stage, ['matching']);
    await wait('the second page', () => told(since).includes('SvcRoleUnhealthy matching'));
    expect(told(since)).toEqual(['SvcStoreDown', 'SvcRoleUnhealthy matching']);
    service.roles.matching.feel(true);
    await quiet();
    expect(told(since)).toHaveLength(2);
  });

  scene('every role of the hosts ends, and the store is well: one page', async () => {
    const { service } = stage;
    const since = stage.alertmanager.notices.length;
    for (const role of healths) service.roles[role].die(true);
    await wait('the page', () => told(since).length > 0);
    await wait('the alerts on each role are held back', async () => {
      const all = await stage.alertmanager.held();
      const held = all.filter(({ status }) => status.state === 'suppressed').map(({ labels }) => labels);
      for (const alertname of ['SvcServiceDown', 'SvcRoleUnhealthy'])
        for (const role of ['frontend', 'history', 'matching', 'worker'])
          if (!held.some((one) => one.alertname === alertname && one.svc_service === role))
            throw new Error(`${alertname} ${role}`);
      return true;
    });
    expect(told(since)).toEqual(['SvcAllRolesDown']);
    for (const role of healths) service.roles[role].die(false);
    await quiet();
    expect(told(since)).toEqual(['SvcAllRolesDown']);
    await noted(since, { alertname: 'SvcAllRolesRecovering' });
  });

  scene('the page of a role that passes its health check fails: a ticket', async () => {
    const { matching } = stage.service.roles;
    const since = stage.alertmanager.notices.length;
    matching.serve(false);
    await wait('the ticket', () => told(since).length > 0);
    matching.serve(true);
    await quiet();
    expect(told(since)).toEqual(['SvcMetricsUnread matching']);
    // That the page of the scene before is over may be said only now.
    const begun = stage.alertmanager.notices.slice(since).filter(({ status }) => status === 'firing');
    expect(begun.map(({ receiver }) => receiver)).not.toContain('on-call');
  });

  scene('many persistence calls of a role fail while the store answers: a page, and no ticket', async () => {
    const { service } = stage;
    const since = stage.alertmanager.notices.length;
    const page = 'SvcPersistenceErrorRate history';
    service.storeErrors.rise(1000);
    await wait('the page', () => told(since).includes(page));
    // On a machine that misses scrapes, the alert on the share may fire first.
    const paged = stage.alertmanager.notices.length;
    await wait(
      'the share is held back',
      async () => (await heldBack()).has('SvcPersistenceErrorRatio') || undefined,
    );
    service.storeErrors.rise(0);
    await quiet();
    expect(told(paged).filter((name) => name !== page)).toEqual([]);
  });
});
