import { beforeAll, describe, expect, test } from 'vitest';
import { hasPostgres } from '../postgres.ts';
import { stopsAtEnd } from '../test-end.ts';
import { hasAlertmanager } from './alertmanager.ts';
import { explainingFaults } from './live/explaining-faults.ts';
import type { Fault } from './live/fault.ts';
import { faults } from './live/faults.ts';
import { expectWhole, shippedAlerts } from './live/shipped.ts';
import { packsRun, type Stage, startStage } from './live/stage.ts';
import { nameOf, type Watch, watchOn } from './live/watch.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * Every alert that the agent can provoke, live: a fault, the built agent, a real Prometheus with the shipped jobs and rules, a
 * real Alertmanager with the shipped routes and inhibitions, and receivers that are notified. Times are shortened by one
 * transformation of what `svc-agent rules` prints: each `for` is 0 s, and every range, subquery and offset becomes 10 s, except
 * the memory of `last_over_time`. One threshold is lower (live/rules.ts). All faults are there at once, in two clusters so that
 * none explains another one, and without the verdicts of the agents, which have a test of their own (one-cause.long.test.ts).
 * `live-faults.test.ts` checks the tables.
 */

const cases = faults.flatMap(({ what, alerts }) => alerts.map((expected) => ({ what, expected })));
const told = cases.filter(({ expected }) => !expected.heldBackBy);
const heldBack = cases.filter(({ expected }) => expected.heldBackBy);

const withinMs = 180_000;

describe.skipIf(!hasPrometheus || !hasAlertmanager || !hasPostgres)('alerts, live', () => {
  const stops = stopsAtEnd();
  let stage: Stage;
  let watch: Watch;
  let active: readonly Fault[] = [];

  beforeAll(async () => {
    stage = await startStage((stop) => stops.push(stop), { withoutIncidents: true });
    watch = watchOn(stage);
    stage.pulse(async () => {
      for (const { again } of active) await again?.(stage);
    });
  });

  const nothingFires = (deadlineMs: number) =>
    watch.wait(
      'no alert fires',
      async () => {
        const firing = await stage.prometheus.firing();
        if (firing.length > 0) throw new Error(JSON.stringify(firing));
        return true;
      },
      deadlineMs,
    );

  test('nothing fires while all is well', async () => {
    const deadlineMs = performance.now() + withinMs;
    // Then every window is full of results of all probes and roles.
    await watch.wait('all is seen', () => stage.isSeen(), deadlineMs);
    await nothingFires(deadlineMs);
  });

  describe('with all faults at once', () => {
    let deadlineMs: number;
    let since: number;
    beforeAll(async () => {
      since = stage.alertmanager.notices.length;
      for (const { provoke } of faults) await provoke(stage);
      active = faults;
      deadlineMs = performance.now() + withinMs;
    });

    for (const { what, expected } of told) {
      test(`${nameOf(expected)} fires and is told: ${what}`, async () => {
        const isTold = () => watch.lastNotice(expected, since);
        expectWhole(await watch.wait('a notice', isTold, deadlineMs), expected);
      });
    }

    for (const { what, expected } of heldBack) {
      const { heldBackBy = [] } = expected;
      test(`${nameOf(expected)} fires and is held back by ${heldBackBy.join(' or ')}: ${what}`, async () => {
        const fact = async () => {
          const by = await watch.inhibitors(expected);
          return by.find((name) => heldBackBy.includes(name));
        };
        await watch.wait('an inhibition', fact, deadlineMs);
      });
    }

    test('they fire as long as the faults are there', async () => {
      const lasting = cases.map(({ expected }) => expected).filter(({ comesAndGoes }) => !comesAndGoes);
      const fact = async () => {
        const silent = await watch.silent(lasting);
        if (silent.length > 0) throw new Error(silent.map(nameOf).join(' '));
        return true;
      };
      await watch.wait('all fire', fact, performance.now() + withinMs);
    });

    test('the literal pack is held back by the recommended one, but where it speaks alone', async () => {
      const deadline = performance.now() + withinMs;
      const literal = shippedAlerts('spec');
      const isAlone = ({ alertname, cluster }: Readonly<Record<string, string>>) =>
        alertname === 'SvcHighRestartRate' && cluster === 'dc2';
      const noticesOf = (alone: boolean) =>
        stage.alertmanager.notices.filter(
          ({ labels }) => labels.pack === 'spec' && isAlone(labels) === alone,
        );
      stage.service.startsInDc2.rise(1);
      await stage.prometheusBy({ withoutJob: 'worker', packs: [...packsRun, 'spec'] });
      const fact = async () => {
        const held = (await stage.alertmanager.held()).filter(
          ({ labels }) => labels.pack === 'spec' && !isAlone(labels),
        );
        const missing = literal.filter((name) => !held.some(({ labels }) => labels.alertname === name));
        const free = held.filter(({ status }) => status.inhibitedBy.length === 0);
        if (missing.length + free.length > 0) throw new Error(JSON.stringify([missing, free]));
        return true;
      };
      await watch.wait('every literal alert that can fire is held back', fact, deadline);
      await watch.wait('the lone one is told', () => noticesOf(true).length > 0, deadline);
      expect(noticesOf(false)).toEqual([]);
      stage.service.startsInDc2.rise(0);
    });

    for (const { what, provoke, undo, alerts, hides } of explainingFaults) {
      const expected = alerts[0]!;
      const hidden = cases.find(({ expected: { alert } }) => alert === hides)!.expected;
      test(`${nameOf(expected)} is told, hides ${hides}, and is told to be over: ${what}`, async () => {
        const deadline = performance.now() + withinMs;
        const before = stage.alertmanager.notices.length;
        const lastNotice = () => watch.lastNotice(expected, before);
        await provoke(stage);
        expectWhole(await watch.wait('a notice', lastNotice, deadline), expected);
        const isHidden = async () =>
          (await watch.silent([hidden])).length > 0 ||
          (await watch.inhibitors(hidden)).includes(`${expected.alert} recommended ${expected.severity}`) ||
          undefined;
        await watch.wait('its end or an inhibition', isHidden, deadline);
        await undo(stage);
        await watch.wait('its end', () => lastNotice()?.status === 'resolved', deadline);
      });
    }
  });

  describe('after all faults', () => {
    let deadlineMs: number;
    beforeAll(async () => {
      active = [];
      for (const { undo } of faults) await undo(stage);
      deadlineMs = performance.now() + withinMs;
    });

    for (const { expected } of told) {
      test(`${nameOf(expected)} is over`, async () => {
        const isOver = () => watch.lastNotice(expected)?.status === 'resolved';
        // The receiver for the record gets no notice of an end.
        const isGone = async () => !(await watch.isHeld(expected));
        await watch.wait('its end', expected.severity === 'info' ? isGone : isOver, deadlineMs);
      });
    }

    test('nothing fires any more', () => nothingFires(deadlineMs));
  });
});
