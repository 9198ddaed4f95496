import { beforeAll, describe, expect, test } from 'vitest';
import { hasPostgres } from '../postgres.ts';
import { stopsAtEnd } from '../test-end.ts';
import { hasAlertmanager } from './alertmanager.ts';
import { critical } from './live/fault.ts';
import { type Stage, startStage } from './live/stage.ts';
import { type Watch, watchOn } from './live/watch.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * Production and staging in one Prometheus, with the same names of clusters, roles, stores and domains: only the label
 * `environment` of the targets distinguishes them. Windows, `for` and `keep_firing_for` are a thirtieth of the shipped ones.
 */

const withinMs = 60_000;
const isShort = process.env.SVC_AGENT_E2E === 'short';

const names = { store: 'main', kind: 'postgres', database: 'persistence' };
const inStaging = { environment: 'staging', cluster: 'dc1' };
const inProduction = { environment: 'production', cluster: 'dc1' };
const storeDown = critical('SvcStoreDown', { ...inStaging, ...names }, /./);
const errors = critical('SvcPersistenceErrorRate', { ...inProduction, svc_service: 'history' }, /./);

describe.skipIf(!hasPrometheus || !hasAlertmanager || !hasPostgres || isShort)('two environments', () => {
  const stops = stopsAtEnd();
  let stage: Stage;
  let watch: Watch;

  const wait = <T>(what: string, fact: () => Promise<T | undefined> | T | undefined) =>
    watch.wait(what, fact, performance.now() + withinMs);
  /** Notices about the wrong environment, or about both together. */
  const mixedUp = () =>
    stage.alertmanager.notices
      .map(({ labels: { alertname, environment } }) => `${alertname} ${environment}`)
      .filter((told) =>
        /^SvcStoreDown (?!staging)|^SvcPersistence\w+ (?!production)|^SvcDomainDis/.test(told),
      );
  const isTold = (expected: typeof errors, status = 'firing') =>
    wait(`${expected.alert} is told as ${status}`, () => watch.lastNotice(expected)?.status === status);

  beforeAll(async () => {
    stage = await startStage(
      (stop) => stops.push(stop),
      { scrapeSeconds: 2, forSeconds: 'cut' },
      { hasStaging: true },
    );
    watch = watchOn(stage);
    await wait('all is seen', () => stage.isSeen());
  });

  test('a domain may be active elsewhere in the other one', async () => {
    stage.describeDomain('dc2', 'orders', {
      replicationConfig: { activeClusterName: 'dc2', clusters: ['dc1', 'dc2', 'dc3'] },
    });
    const opinions =
      'count(count by (environment, active_cluster) (svc_domain_active_cluster{domain="orders"}))';
    const differ = `${opinions} == 2 and count_over_time((${opinions} == 2)[15s:1s]) >= 14`;
    // The alert waits for ten seconds.
    await wait(
      'they have named two clusters for 14 s',
      async () => (await stage.prometheus.value(differ)) === 2,
    );
    expect(mixedUp()).toEqual([]);
  });

  test('an outage of one is told, beside a store of that name that is well, and hides nothing of the other', async () => {
    await stage.storeGates.dc2.shut();
    await isTold(storeDown);
    stage.service.storeErrors.rise(1000);
    await isTold(errors);
    expect(mixedUp()).toEqual([]);
  });

  test('the end of one is not the end of the other', async () => {
    await stage.storeGates.dc2.open();
    await isTold(storeDown, 'resolved');
    expect(await watch.silent([errors])).toEqual([]);
    stage.service.storeErrors.rise(0);
    await isTold(errors, 'resolved');
    expect(mixedUp()).toEqual([]);
  });
});
