import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { planArchives } from '../../../../src/probes/archival/plan.ts';
import type { Finding } from '../../../../src/probes/probe.ts';
import { manualClock } from '../../../clock.ts';
import { probeDeps } from '../../../cluster-group.ts';
import { newFolder } from '../../../folder.ts';

// A worker archives closed workflows when their retention ends, and then stops; what it would have archived is counted here by
// hand, workflow by workflow.

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const names = {
  unarchived: 'svc_archival_unarchived_workflows',
  due: 'svc_archival_due_workflows',
  next: 'svc_archival_next_deletion_timestamp_seconds',
};

async function archive({ status = 'enabled' as const } = {}) {
  const directory = newFolder();
  const clock = manualClock();
  const totals = new Map<string, number>();
  const domains = new Map<string, Finding>();
  const [row] = planArchives({
    archival: { history: { status: 'enabled', enableRead: false, providers: [{ kind: 'filestore' }] } },
    domainDefaults: { archival: { history: { status, uri: `file://${directory}` } } },
  });
  const probe = await row!.open({
    ...probeDeps({ clock }),
    readings: {
      values: (family) =>
        family === 'svc_workflow_completed'
          ? [...totals].map(([domain, value]) => ({ labels: { domain }, value }))
          : [],
    },
    latest: (name) => domains.get(name),
  });
  onTestFinished(() => probe.close?.());
  let memory: unknown;
  return {
    clock,
    /** Closes workflows in a domain. */
    close: (domain: string, count: number) => totals.set(domain, (totals.get(domain) ?? 0) + count),
    restart: (domain: string) => totals.set(domain, 0),
    retention(domain: string, days: number, archives = 1) {
      domains.set(`domain/${domain}`, {
        msg: '',
        gauges: [
          { name: 'svc_domain_retention_seconds', labels: { domain }, value: days * 86_400 },
          { name: 'svc_domain_archival_enabled', labels: { domain, archive: 'history' }, value: archives },
        ],
      });
    },
    write(name: string) {
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, name), 'x');
      utimesSync(join(directory, name), clock.nowMs() / 1000, clock.nowMs() / 1000);
    },
    async check() {
      const finding = await probe.check(new AbortController().signal, memory);
      // The memory passes through JSON, as in a restart.
      memory = JSON.parse(JSON.stringify(finding.remember));
      const gauge = (name: string) => finding.gauges?.find((one) => one.name === name)?.value;
      return {
        unarchived: gauge(names.unarchived),
        due: gauge(names.due),
        next: gauge(names.next),
        msg: finding.msg,
        bytes: JSON.stringify(finding.remember).length,
      };
    },
  };
}

test('what is closed and archived in time is no loss; what comes due while nothing is written is, to the workflow', async () => {
  const { clock, close, retention, write, check } = await archive();
  retention('orders', 7);
  close('orders', 1000);
  expect(await check()).toMatchObject({ due: 0, next: undefined });
  const startedMs = clock.nowMs();
  // One workflow closes per hour for ten days; from the seventh day on, each hour's workflow is archived.
  for (let hour = 1; hour <= 10 * 24; hour++) {
    clock.advance(hourMs);
    close('orders', 1);
    if (hour > 7 * 24) write(`h${hour}`);
    const { unarchived } = await check();
    expect(unarchived, `hour ${hour}`).toBe(0);
  }
  const stoppedMs = clock.nowMs();
  for (let hour = 1; hour <= 24; hour++) {
    clock.advance(hourMs);
    close('orders', 1);
    await check();
  }
  const { unarchived, due, next, msg } = await check();
  // With slots of four hours and an hour of grace, at most five of the 24 are not counted yet.
  expect(unarchived).toBeGreaterThanOrEqual(19);
  expect(unarchived).toBeLessThanOrEqual(24);
  expect(due).toBeGreaterThanOrEqual(20);
  expect(due).toBeLessThanOrEqual(28);
  expect(next! * 1000).toBeGreaterThan(clock.nowMs());
  expect(next! * 1000).toBeLessThanOrEqual(clock.nowMs() + 4 * hourMs);
  expect(msg).toContain(`the retention of ${unarchived} closed workflows has elapsed`);
  expect(stoppedMs).toBeGreaterThan(startedMs);
  // The archive is written again.
  write('again');
  expect((await check()).unarchived).toBe(0);
});

test('a restart of the role is no loss, and a domain that does not archive is none either', async () => {
  const { clock, close, restart, retention, check } = await archive();
  retention('orders', 1);
  retention('scratch', 1, 0);
  close('orders', 5);
  close('scratch', 5);
  await check();
  close('orders', 3);
  close('scratch', 100);
  await check();
  restart('orders');
  close('orders', 2);
  await check();
  clock.advance(dayMs / 2);
  expect(await check()).toMatchObject({ unarchived: 0, due: 5 });
  clock.advance(dayMs);
  // An archive without objects contains none of it.
  expect(await check()).toMatchObject({ unarchived: 5, due: 0 });
});

test('a domain that nobody describes has the default retention, unless new domains do not archive', async () => {
  const known = await archive();
  const off = await archive({ status: 'disabled' as 'enabled' });
  for (const { clock, close, check } of [known, off]) {
    await check();
    close('orders', 1);
    await check();
    close('orders', 4);
    await check();
    clock.advance(6.5 * dayMs);
  }
  expect(await known.check()).toMatchObject({ unarchived: 0, due: 4 });
  expect((await off.check()).due).toBeUndefined();
});

test('a description that fails keeps the retention; what is remembered stays small', async () => {
  const { clock, close, retention, check } = await archive();
  for (let domain = 0; domain < 100; domain++) {
    retention(`d${domain}`, 365);
    close(`d${domain}`, 1);
  }
  await check();
  let bytes = 0;
  for (let day = 0; day < 400; day += 4) {
    clock.advance(4 * dayMs);
    for (let domain = 0; domain < 100; domain++) close(`d${domain}`, 1);
    ({ bytes } = await check());
  }
  expect(bytes).toBeLessThan(64_000);
});
