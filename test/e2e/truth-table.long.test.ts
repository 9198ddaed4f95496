import { beforeAll, describe, expect, type TestContext, test } from 'vitest';
import { hasPostgres } from '../postgres.ts';
import { stopsAtEnd } from '../test-end.ts';
import { hasAlertmanager, type Notice } from './alertmanager.ts';
import { critical, type Expected } from './live/fault.ts';
import { workflowsPerSecond } from './live/service.ts';
import { type Stage, startStage } from './live/stage.ts';
import { type Watch, watchOn } from './live/watch.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * What must not be notified, live: restarts of agents and Prometheus, in health and in an outage; a cluster whose neighbour has
 * an outage; a store that comes and goes; a role that is scaled down. And what must be: that something is still wrong after the
 * outage. Windows, `for` and `keep_firing_for` are a thirtieth of the shipped ones.
 */

const withinMs = 60_000;
/**
 * A longer gap in the scrapes of an agent is one of minutes, because windows and `for` are shortened: then a notice may be right.
 * An alert ends after 10 s without its condition. Prometheus scrapes nothing in the first 5 s after its start.
 */
const longestGapSeconds = 9;
const mostRounds = 2;

const storeDown = (cluster: string): Expected =>
  critical('SvcStoreDown', { cluster, store: 'main', kind: 'postgres', database: 'persistence' }, /./);
const matching = { cluster: 'dc1', job: 'matching', svc_service: 'matching' };
const matchingDown = critical('SvcServiceDown', matching, /./);
const history = { cluster: 'dc1', svc_service: 'history' };
const errors = critical('SvcPersistenceErrorRate', history, /./);
const vanished = critical('SvcTargetsVanished', { cluster: 'dc1', job: 'worker' }, /./);

const said = ({ status, labels: { alertname, cluster } }: Notice) => `${status} ${alertname} ${cluster}`;

describe.skipIf(!hasPrometheus || !hasAlertmanager || !hasPostgres)('what is told', () => {
  const stops = stopsAtEnd();
  let stage: Stage;
  let watch: Watch;

  const wait = <T>(what: string, fact: () => Promise<T | undefined> | T | undefined) =>
    watch.wait(what, fact, performance.now() + withinMs);
  const count = () => stage.alertmanager.notices.length;
  /** The notices that people got after this many notices; notices for the record do not count. */
  const told = (since: number) =>
    stage.alertmanager.notices
      .slice(since)
      .filter(({ receiver }) => receiver !== 'log-book')
      .map(said)
      .sort();
  const isTold = (expected: Expected, since: number, status = 'firing') =>
    wait(
      `${expected.alert} is told as ${status}`,
      () => watch.lastNotice(expected, since)?.status === status,
    );
  /** Lets scrapes continue for this many seconds. */
  const seconds = (number: number) => {
    const until = Date.now() / 1000 + number;
    const newest = 'timestamp(up{job="svc-agent", cluster="dc3"})';
    return wait(`${number} s of scrapes`, async () => (await stage.prometheus.value(newest)) >= until);
  };
  const hasEnded = () =>
    wait('only the record is left', async () => {
      const firing = (await stage.prometheus.firing()).filter(({ severity }) => severity !== 'info');
      if (firing.length > 0) throw new Error(JSON.stringify(firing));
      return true;
    });
  const agentsUp = 'up{job="svc-agent"}';
  const pages = async () =>
    (await stage.prometheus.firing())
      .filter(({ severity }) => severity === 'critical')
      .map(({ alertname, cluster, job }) => `${alertname} ${cluster} ${job}`);
  /**
   * Restarts, and waits until Prometheus has scraped each agent and evaluates each page as before. A scrape that the end of
   * Prometheus interrupts is one that failed, so that an alert on scrapes may begin again, with its whole `for`.
   */
  const scrapedAfter = async (restart: () => Promise<unknown>) => {
    const before = await pages();
    await restart();
    const missing = `count(${agentsUp} == 0 or timestamp(${agentsUp}) < ${Date.now() / 1000})`;
    await wait('all agents are scraped', async () => (await stage.prometheus.value(missing)) === 0);
    await wait('all pages fire', async () => {
      const now = await pages();
      return before.every((page) => now.includes(page));
    });
    await seconds(3);
  };
  /** The longest time without a scrape that succeeded, of any agent, since this moment. */
  const gapSeconds = (sinceMs: number) => {
    const newest = `max_over_time((timestamp(${agentsUp}) and ${agentsUp} == 1)[1m:1s])`;
    const windowSeconds = Math.ceil((Date.now() - sinceMs) / 1000);
    return stage.prometheus.value(`max(max_over_time((time() - ${newest})[${windowSeconds}s:1s]))`);
  };
  /** Ends agents and Prometheus in each way and starts them again, one after the other. */
  const startAllAgain = async () => {
    const { agents, prometheus } = stage;
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await scrapedAfter(async () => {
        await Promise.all([agents.first, agents.other].map((agent) => agent.kill(signal)));
        await Promise.all([agents.first, agents.other].map((agent) => agent.restart()));
      });
      await scrapedAfter(() => prometheus.restart(signal));
    }
  };
  /**
   * Plays a scene, and on a busy machine plays it again from `health` if agents could not be scraped for too long. On a machine
   * on which that happens again, the test is skipped.
   */
  const play = async (context: TestContext, scene: () => Promise<void>, health: () => Promise<unknown>) => {
    for (let round = 1; ; round++) {
      const startMs = Date.now();
      try {
        await scene();
      } catch (thrown) {
        const gap = await gapSeconds(startMs);
        if (gap <= longestGapSeconds) throw thrown;
        await health();
        await hasEnded();
        if (round === mostRounds) context.skip(`an agent was not scraped for ${gap} s`);
        continue;
      }
      await health();
      return hasEnded();
    }
  };
  const outage = async (since: number) => {
    await stage.storeGates.dc1.shut();
    stage.service.roles.matching.die(true);
    stage.service.storeErrors.rise(1000);
    stage.service.roles.history.feel(false, 'persistence is unavailable');
    await isTold(storeDown('dc1'), since);
    await isTold(matchingDown, since);
  };
  /** The store is there again; its effects may continue. */
  const storeIsBack = async () => {
    await stage.storeGates.dc1.open();
    stage.service.roles.matching.die(false);
    stage.service.roles.history.feel(true);
  };

  beforeAll(async () => {
    stage = await startStage((stop) => stops.push(stop), { scrapeSeconds: 2, forSeconds: 'cut' });
    watch = watchOn(stage);
    await wait('all is seen', () => stage.isSeen());
    await hasEnded();
  });

  test('nothing in health, while a role is scaled down and agents and Prometheus start again', async (context) => {
    const { canary, canaryOnSecond } = stage.service;
    const health = async () => {
      canary.rise(workflowsPerSecond);
      canaryOnSecond.rise(0);
      await stage.prometheusBy({});
      await seconds(3);
    };
    const scene = async () => {
      const before = count();
      canary.rise(0);
      canaryOnSecond.rise(workflowsPerSecond);
      await stage.prometheusBy({ only: { job: 'history', agent: 'second' } });
      await startAllAgain();
      await health();
      expect(told(before)).toEqual([]);
    };
    await play(context, scene, health);
  });

  test('an outage of one cluster once, whatever starts again meanwhile', async (context) => {
    const health = async () => {
      stage.service.storeErrors.rise(0);
      await storeIsBack();
      await isTold(storeDown('dc1'), 0, 'resolved');
      await isTold(matchingDown, 0, 'resolved');
    };
    const scene = async () => {
      const before = count();
      await outage(before);
      await startAllAgain();
      expect(told(before)).toEqual(['firing SvcServiceDown dc1', 'firing SvcStoreDown dc1']);
    };
    await play(context, scene, health);
  });

  test('what is still sick after an outage, beside a store that comes and goes and a role without targets', () =>
    watch.play(async () => {
      // A scene that failed may have left a service that is not well.
      await stage.storeGates.dc2.open();
      await storeIsBack();
      stage.service.storeErrors.rise(0);
      await stage.prometheusBy({});
      await hasEnded();

      await outage(count());
      const before = count();
      await storeIsBack();
      await stage.prometheusBy({ withoutJob: 'worker' });
      for (let times = 0; times < 2; times++) {
        await stage.storeGates.dc2.shut();
        await isTold(storeDown('dc2'), before);
        await seconds(5);
        await stage.storeGates.dc2.open();
        await seconds(5);
      }
      await isTold(errors, before);
      await isTold(vanished, before);
      stage.service.storeErrors.rise(0);
      await stage.prometheusBy({});
      await hasEnded();
      await isTold(storeDown('dc2'), before, 'resolved');
      for (const expected of [errors, vanished]) await isTold(expected, before, 'resolved');
      // The share of errors is large, too, but one notification is enough.
      const each = ['SvcPersistenceErrorRate dc1', 'SvcStoreDown dc2'];
      expect(told(before)).toEqual([
        ...[...each, 'SvcTargetsVanished dc1'].map((alert) => `firing ${alert}`),
        ...[...each, 'SvcServiceDown dc1', 'SvcStoreDown dc1', 'SvcTargetsVanished dc1']
          .sort()
          .map((alert) => `resolved ${alert}`),
      ]);
    }));
});
