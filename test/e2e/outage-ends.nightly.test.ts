import { beforeAll, describe, expect, test } from 'vitest';
import { hasPostgres } from '../postgres.ts';
import { stopsAtEnd } from '../test-end.ts';
import { hasAlertmanager } from './alertmanager.ts';
import type { Expected } from './live/fault.ts';
import { outages } from './live/outages.ts';
import { type Stage, startStage } from './live/stage.ts';
import { nameOf, type Watch, watchOn } from './live/watch.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * One outage after another in a service that is otherwise well, with a real Prometheus and Alertmanager: one alert notifies, and
 * the alerts that it explains are inhibited, even while their windows still see the outage after its end. Windows and `for` are
 * shortened as in the live run of the alerts.
 */

const withinMs = 120_000;

describe.skipIf(!hasPrometheus || !hasAlertmanager || !hasPostgres)('the end of an outage', () => {
  const stops = stopsAtEnd();
  let stage: Stage;
  let watch: Watch;

  const wait = <T>(what: string, fact: () => Promise<T | undefined> | T | undefined) =>
    watch.wait(what, fact, performance.now() + withinMs);
  /** Waits until these alerts are silent: on a busy machine a scrape may miss its second, so that other alerts come and go. */
  const quiet = (alerts: readonly Expected[]) =>
    wait('the alerts are over', async () => (await watch.silent(alerts)).length === alerts.length);

  beforeAll(async () => {
    stage = await startStage((stop) => stops.push(stop));
    watch = watchOn(stage);
    await wait('all is seen', () => stage.isSeen());
  });

  test.each(outages)('notifies nobody of what it explained: $what', async (outage) => {
    const { begin, told, suffer, explained, end, recovering, looksBack } = outage;
    const alertname = `alertname="${recovering.alert}", alertstate="firing"`;
    await quiet([told, ...explained]);
    await wait(
      'no outage has just ended',
      async () => (await stage.prometheus.value(`count(ALERTS{${alertname}})`)) === 0,
    );
    await begin(stage);
    await wait('the outage is told', () => watch.lastNotice(told));
    await suffer(stage);
    for (const expected of explained)
      await wait(
        `${nameOf(expected)} is held back`,
        async () => (await watch.inhibitors(expected)).length > 0,
      );

    const before = stage.alertmanager.notices.length;
    await end(stage);
    await wait('the end of the outage is told', () => watch.lastNotice(told, before)?.status === 'resolved');
    const over = await watch.silent(explained);
    const recorded = await wait('the outage is put on record', () =>
      stage.alertmanager.notices
        .slice(before)
        .find(
          ({ labels }) => labels.alertname === recovering.alert && labels.cluster === told.labels.cluster,
        ),
    );
    expect(recorded.receiver).toBe('log-book');
    // There is one entry, although each window has an alert.
    expect(recorded.labels.window).toBe(recovering.windows.at(-1));
    await quiet(explained);

    const wronglyTold = explained.filter(
      (expected) => watch.lastNotice(expected, before)?.status === 'firing',
    );
    expect(wronglyTold.map(nameOf)).toEqual([]);
    // This proves something only if there were alerts to inhibit after the end.
    if (looksBack) expect(over.length).toBeLessThan(explained.length);
  });
});
