import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ProbeStatus, StatusFacts, StatusReport } from '../../src/agent/report.ts';
import { manualClock } from '../clock.ts';
import { available } from '../installed.ts';
import { exampleOf } from '../preview/status.ts';
import { folder } from '../run-folder.ts';
import { serving } from '../serving.ts';
import { bySize, onlyLong, onlyShort, testOnce } from '../size.ts';
import { type ServedPage, servePage } from '../status-page.ts';
import { probeStatusOf, statusReportOf } from '../status-report.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { startAgent } from './process.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const refused = { reason: 'refused', msg: 'connection refused' } as const;

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const hasChromium = available('Chromium', existsSync(executablePath));
let browser: Browser;
beforeAll(async () => {
  if (hasChromium) browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
});
beforeEach(({ skip }) => skip(!hasChromium, 'Chromium is not installed'));
afterAll(() => browser?.close());

interface Opened {
  tab: Page;
  /** The browser's complaints: errors of scripts, violations of the policy, missing files. */
  complaints: string[];
}

async function open(
  url: string,
  { width = 1280, height = 900, dark = false } = {},
  page?: Page,
): Promise<Opened> {
  const tab =
    page ??
    (await browser.newPage({
      viewport: { width, height },
      colorScheme: dark ? 'dark' : 'light',
      // In a transition between two colors there is no contrast to check.
      reducedMotion: 'reduce',
    }));
  atTestEnd(() => tab.close());
  const complaints: string[] = [];
  tab.on('pageerror', (error) => complaints.push(String(error)));
  tab.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  tab.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`);
  });
  await tab.goto(url);
  await tab.locator('.banner h1').waitFor();
  return { tab, complaints };
}

/** Serves the page with reports that a test may change while it is open. */
async function serve(
  facts: Partial<StatusFacts>,
): Promise<ServedPage & { change(facts: Partial<StatusFacts>): void }> {
  let shown = facts;
  const report = (): StatusReport => statusReportOf(shown);
  const served = await servePage(report);
  atTestEnd(served.close);
  return {
    ...served,
    change(next) {
      shown = next;
    },
  };
}

async function example(isIll: boolean): Promise<string> {
  const made = await exampleOf(isIll);
  atTestEnd(made.close);
  return made.url;
}

const headline = (tab: Page) => tab.locator('.banner h1').innerText();
const sideways = (tab: Page) =>
  tab.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');

async function violations(tab: Page): Promise<string[]> {
  await tab.evaluate(axe);
  // Every rule of axe, including those that it leaves out by default.
  const rules = 'Object.fromEntries(axe.getRules().map(({ ruleId }) => [ruleId, { enabled: true }]))';
  return tab.evaluate(`axe.run({ rules: ${rules} }).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => id + ' ' + html.slice(0, 200) + ' ' + failureSummary)))`);
}

test('document, script and style are below 150 kB', () => {
  const files = ['index.html', 'page.js', 'page.css', 'icon.svg'];
  const sizes = files.map(
    (file) => statSync(fileURLToPath(new URL(`../../dist/page/${file}`, import.meta.url))).size,
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000);
});

type Appearance = readonly [width: number, height: number, isIll: boolean, dark: boolean];
const everyAppearance: readonly Appearance[] = [
  [320, 780],
  [768, 1024],
  [1280, 900],
  [1920, 1080],
].flatMap(([width, height]) =>
  [false, true].flatMap((isIll) => [false, true].map((dark) => [width!, height!, isIll, dark] as const)),
);
/** Half of all appearances, in which every pair occurs: each width with each state and with each colour scheme, and so on. */
const everyPair = everyAppearance.filter(
  ([width, , isIll, dark]) => (width === 768 || width === 1920) === (isIll === dark),
);
/** Each state and each colour scheme once, not all combinations. */
const someAppearances: readonly Appearance[] = [
  [320, 780, true, false],
  [768, 1024, false, true],
];

test.each(bySize({ short: someAppearances, long: everyPair, nightly: everyAppearance }))(
  '%d × %d, ill %s, dark %s: no complaint, no sideways scrolling, no violation that axe knows',
  async (width, height, isIll, dark) => {
    const { tab, complaints } = await open(await example(isIll), { width, height, dark });
    await tab.waitForFunction(`document.querySelectorAll('[data-plot] canvas').length > 3`);
    // On a busy machine the page may have lost the agent for a moment.
    await expect
      .poll(() => headline(tab))
      .toMatch(isIll ? /^Store main refuses connections/ : /^All is well: 4 roles/);
    expect(await sideways(tab)).toBe(0);
    expect(await violations(tab)).toEqual([]);
    // All folds are opened.
    await tab.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`);
    expect(await sideways(tab)).toBe(0);
    expect(await violations(tab)).toEqual([]);
    expect(complaints).toEqual([]);
  },
);

testOnce('the policy has no exceptions, and nothing comes from elsewhere', async () => {
  const { url } = await serve({});
  const answer = await fetch(url);
  const policy = answer.headers.get('content-security-policy');
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|data:|blob:|http|\*/);
  const tab = await browser.newPage();
  atTestEnd(() => tab.close());
  const asked: string[] = [];
  tab.on('request', (request) => asked.push(request.url()));
  await tab.goto(url);
  await tab.locator('.banner h1').waitFor();
  expect(asked.filter((one) => !one.startsWith(url))).toEqual([]);
});

testOnce('a fault and its end show on the open page', async () => {
  const well = { probes: [probeStatusOf('health/frontend')] };
  const served = await serve(well);
  const { tab } = await open(served.url);
  await tab.getByText('All is well: 1 role').first().waitFor();
  served.change({ probes: [probeStatusOf('health/frontend', refused)] });
  await tab.locator('.banner.bad').waitFor();
  expect(await headline(tab)).toBe('Role frontend is down');
  expect(await tab.title()).toContain('Role frontend is down');
  served.change(well);
  await tab.locator('.banner.good').waitFor();
});

onlyLong(test).each([
  ['all is well', {}],
  ['a role is down', refused],
])(
  'an agent that falls silent while %s: the page says when it answered last, and what to do',
  async (_, last) => {
    const served = await serve({ probes: [probeStatusOf('health/frontend', last)] });
    const { tab } = await open(served.url);
    const asked = tab.waitForResponse(/SvcAgentDown/);
    await tab.reload();
    await asked;
    await tab.locator('.banner .act, .banner.good').first().waitFor();
    await served.close();
    await tab.getByText('No answer from the agent').first().waitFor();
    expect(await tab.locator('.banner.good').count()).toBe(0);
    // The time of the last answer, whatever the problem of before.
    expect(await tab.locator('.banner .since').innerText()).toMatch(/^Last answer at \S+ \S+ \(\d+ s ago\)$/);
    await tab.locator('.banner').getByRole('button', { name: 'What to do' }).click();
    await tab.getByRole('dialog').getByText('Meaning').waitFor();
  },
);

testOnce('markup from outside stays text', async () => {
  const nasty = `"><img src=x onerror=document.title='owned'><script>document.title='owned'</script>&lt;b&gt;\${x}`;
  const { url } = await serve({
    instance: nasty,
    roles: [nasty],
    config: { files: [nasty], lastReloadSuccessful: false, lastReloadError: nasty },
    state: { directory: nasty, sequence: 1, commitFailures: 1, degraded: nasty },
    listeners: [{ listener: nasty, address: nasty, tls: false }],
    reporters: [
      {
        ...{ block: nasty, kind: 'hostedmetrics', target: nasty, failures: 1 },
        ...{ lastFailure: { reason: 'credentials', what: nasty, at: '2026-01-01T00:00:59.000Z' } },
      },
    ],
    probes: [
      probeStatusOf(`health/${nasty}`, { reason: 'not_ok', msg: nasty }),
      probeStatusOf(`store/${nasty}`, {
        msg: nasty,
        details: {
          server: nasty,
          schema: nasty,
          connections: { [nasty]: 3 },
          connectionsMax: 5,
          checks: [{ check: nasty, holds: false, found: nasty, severity: 'advice', why: nasty, set: nasty }],
        },
      }),
      probeStatusOf(`domain/${nasty}`, {
        details: { activeCluster: nasty, clusters: [nasty], failover: { ready: false, why: nasty } },
      }),
      probeStatusOf(`recovery/${nasty}`, {
        details: {
          chain: { recoveryPoint: nasty, links: [{ backup: nasty, type: nasty, what: nasty, to: nasty }] },
        },
      }),
    ],
    logs: [{ path: nasty, services: [nasty], offset: 1, lagBytes: 1, state: nasty }],
    entries: {
      services: [{ service: nasty, levels: { [nasty]: 1 } }],
      loggers: [{ service: nasty, logger: nasty, levels: { error: 1 } }],
      loggerCount: 1,
      lastWords: [],
      lastErrors: [
        { at: '2026-01-01T00:00:00.000Z', service: nasty, level: nasty, logger: nasty, msg: nasty },
      ],
    },
    series: { total: 1, limit: 10, families: [{ family: nasty, series: 1 }] },
    refused: [{ family: nasty, reason: nasty, count: 1 }],
    refusals: [
      {
        family: nasty,
        reason: nasty,
        service: nasty,
        labels: `tag="${nasty}"`,
        at: '2026-01-01T00:00:00.000Z',
      },
    ],
    conflicts: [nasty],
    drops: [{ component: nasty, reason: nasty, count: 1 }],
  });
  const { tab, complaints } = await open(url);
  await tab.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`);
  expect(await tab.locator('img, main script').count()).toBe(0);
  expect(await tab.title()).not.toBe('owned');
  // Each place shows the text literally.
  expect((await tab.locator('body').innerText()).split(nasty).length).toBeGreaterThan(25);
  expect(await sideways(tab)).toBe(0);
  expect(complaints).toEqual([]);
});

testOnce('everything can be done by keyboard: the window of time, and the runbook of a problem', async () => {
  const { url } = await serve({ probes: [probeStatusOf('store/main', refused)] });
  const { tab, complaints } = await open(url);
  await tab.keyboard.press('Tab');
  expect(await tab.evaluate('document.activeElement.className')).toBe('skip');
  await tab.keyboard.press('Tab');
  expect(await tab.evaluate('document.activeElement.id')).toBe('filter');
  await tab.keyboard.press('Tab');
  // The agent is a minute old.
  expect(await tab.locator('input:checked').getAttribute('value')).toBe('15 min');
  await tab.keyboard.press('ArrowRight');
  expect(await tab.locator('input:checked').getAttribute('value')).toBe('1 h');
  expect(tab.url()).toContain('?window=1+h');
  await tab.keyboard.press('Tab');
  expect(await tab.evaluate('document.activeElement.textContent')).toContain('What to do');
  await tab.keyboard.press('Enter');
  const dialog = tab.getByRole('dialog');
  await dialog.getByText('No agent can connect to the store.').waitFor();
  expect(await tab.evaluate('document.activeElement.className')).toBe('text');
  expect(await violations(tab)).toEqual([]);
  // A link leads to the next runbook.
  await dialog.getByRole('button', { name: 'database corruption' }).click();
  await dialog.getByRole('heading', { name: /Recovery: database-corruption/ }).waitFor();
  await dialog.getByText('Loading…').waitFor({ state: 'detached' });
  expect(await tab.evaluate('document.activeElement.className')).toBe('text');
  await tab.keyboard.press('Escape');
  expect(await dialog.count()).toBe(0);
  expect(await tab.evaluate('document.activeElement.textContent')).toContain('What to do');
  expect(complaints).toEqual([]);
});

testOnce('what the reader opened stays open while data come in', async () => {
  const { url, ...served } = await serve({
    conflicts: [],
    logs: [{ path: '/a.log', services: ['a'], offset: 1, lagBytes: 0, state: 'following' }],
  });
  const { tab } = await open(url);
  await tab.locator('summary', { hasText: /^Files$/ }).click();
  served.change({
    logs: [{ path: '/a.log', services: ['a'], offset: 3 << 20, lagBytes: 0, state: 'following' }],
  });
  await tab.getByText('3.0 MiB').waitFor();
  expect(await tab.locator('details[open]').count()).toBe(1);
});

/** A service far above the usual size, in which every hundredth target fails. */
function crowd(domainCount: number): Partial<StatusFacts> {
  const last = (i: number) => (i % 100 === 0 ? refused : {});
  const details = { activeCluster: 'dc1', clusters: ['dc1', 'dc2'] };
  const services = Array.from({ length: 50 }, (_, i) => `service-${i}`);
  const domains = Array.from({ length: domainCount }, (_, i) => `domain-${i}`);
  return {
    probes: [
      ...services.map((name, i) => probeStatusOf(`health/${name}`, last(i))),
      ...domains.map((name, i) => probeStatusOf(`domain/${name}`, { details, ...last(i) })),
    ],
    domains: domains.map((domain) => ({
      domain,
      activeCluster: 'dc1',
      failovers: 1,
      lastFailover: '2026-01-01T00:00:30.000Z',
    })),
    logs: Array.from({ length: 1000 }, (_, i) => ({
      path: `/var/log/${i}.log`,
      services: ['history'],
      offset: i,
      lagBytes: 0,
      state: 'following',
    })),
  };
}

test.each(bySize({ short: [360], long: [1920], nightly: [360, 1920] }))(
  '5,000 domains that all failed over, 50 roles and 1,000 log files at %d px',
  async (width) => {
    const { url, change } = await serve(crowd(5_000));
    const { tab, complaints } = await open(url, { width });
    expect(await headline(tab)).toBe('Role service-0 is down and 50 domains cannot be read');
    const table = tab.getByRole('table', { name: 'Domains', exact: true });
    // Failing ones come first.
    expect(await table.locator('tbody tr').first().innerText()).toMatch(/^domain-0\s+fault/);
    expect(await tab.getByText('4,794 more are in svc-agent status --json.').count()).toBe(1);
    // Each change draws the page again, so it must stay small enough for a phone.
    expect(await tab.locator('*').count()).toBeLessThan(15_000);
    expect(await sideways(tab)).toBe(0);
    change({ ...crowd(5_000), probes: [probeStatusOf('domain/domain-0')] });
    await until('the page follows', async () => (await headline(tab)).startsWith('All is well'));
    expect(complaints).toEqual([]);
  },
);

/** A large installation that is well except for a store, the settings of another one, and a domain. */
function large(): Partial<StatusFacts> {
  const details = { activeCluster: 'dc1', clusters: ['dc1', 'dc2'], failover: { ready: true, why: '' } };
  const settings = (holds: boolean) => ({
    ...{ server: 'PostgreSQL 16.4', schema: '1.11', connections: { idle: 34 }, connectionsMax: 200 },
    checks: [
      { check: 'wal_level', severity: 'recovery_weak', found: 'wal_level', holds, why: 'x', set: 'y' },
    ],
  });
  const storeOf = (i: number) => (i === 7 ? refused : { details: settings(i !== 30) });
  const roles = ['frontend', 'history', 'matching', 'worker'];
  const databases = Array.from({ length: 40 }, (_, i) => `store-${i}`);
  return {
    roles,
    probes: [
      ...roles.map((role) => probeStatusOf(`health/${role}`)),
      ...databases.map((name, i) => probeStatusOf(`store/${name}`, storeOf(i))),
      probeStatusOf('cluster/dc2'),
      ...Array.from({ length: 500 }, (_, i) =>
        probeStatusOf(`domain/domain-${i}`, i === 444 ? refused : { details }),
      ),
    ],
    replication: [{ source: 'dc1', target: 'dc2', lagSeconds: 1 }],
    logs: roles.map((role) => ({
      ...{ path: `/var/log/${role}.log`, services: [role], offset: 1, lagBytes: 0, state: 'following' },
    })),
  };
}

testOnce(
  'forty stores and five hundred domains: two screens, a filter by name, and all of it in the address',
  async () => {
    const clock = manualClock(Date.parse('2026-01-01T00:01:00.000Z'));
    const { url, history, close } = await servePage(() => statusReportOf(large()), clock);
    atTestEnd(close);
    history.start();
    for (let samples = 0; samples < 3; samples++) {
      clock.advance(5_000);
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
    const { tab, complaints } = await open(url, { width: 1920, height: 1080 });
    expect(await headline(tab)).toBe('Store store-7 refuses connections; 1 domain is down because of it');
    await tab.locator('[data-plot] canvas').first().waitFor();
    expect(await tab.evaluate('document.documentElement.scrollHeight')).toBeLessThanOrEqual(2 * 1080);
    // What is wrong comes first.
    expect(await tab.locator('.target.store h3').allInnerTexts()).toEqual(
      expect.arrayContaining(['store-7', 'store-30']),
    );
    expect(await tab.locator('.target.store h3').first().innerText()).toBe('store-7');
    expect(await tab.locator('.target.store .check').first().innerText()).toContain('recovery is weak');
    expect(await tab.locator('tbody td:first-child strong').first().innerText()).toBe('domain-444');
    await tab.locator('#filter').fill('-33');
    const names = () => tab.locator('.target.store h3, tbody td:first-child strong').allInnerTexts();
    await expect
      .poll(names)
      .toEqual(expect.arrayContaining(['store-33', 'domain-33', 'domain-330', 'domain-339']));
    expect((await names()).every((name) => name.includes('-33'))).toBe(true);
    const again = await open(tab.url(), { width: 1920, height: 1080 });
    await expect.poll(() => again.tab.locator('.target.store h3').allInnerTexts()).toEqual(['store-33']);
    expect(complaints).toEqual([]);
  },
);

testOnce('forty stores and five hundred domains that all fail: still two screens', async () => {
  const roles = ['frontend', 'history', 'matching', 'worker'];
  const { url } = await serve({
    roles,
    probes: [
      ...roles.map((role) => probeStatusOf(`health/${role}`)),
      ...Array.from({ length: 40 }, (_, i) => probeStatusOf(`store/store-${i}`, refused)),
      ...Array.from({ length: 500 }, (_, i) => probeStatusOf(`domain/domain-${i}`, refused)),
    ],
  });
  const { tab, complaints } = await open(url, { width: 1920, height: 1080 });
  expect(await headline(tab)).toBe('40 stores refuse connections; 500 domains are down because of them');
  expect(await tab.evaluate('document.documentElement.scrollHeight')).toBeLessThanOrEqual(2 * 1080);
  expect(await tab.getByText(/^\d+ more (?:domains|databases|stores)$/).allInnerTexts()).toHaveLength(2);
  expect(complaints).toEqual([]);
});

testOnce('with three hundred roles the page stays short, and the roles that fail are the first', async () => {
  const { url } = await serve({
    roles: Array.from({ length: 300 }, (_, i) => `role-${i}`),
    probes: Array.from({ length: 300 }, (_, i) =>
      probeStatusOf(`health/role-${i}`, i === 250 || i === 270 ? refused : {}),
    ),
  });
  const { tab, complaints } = await open(url, { width: 1920, height: 1080 });
  const names = tab.locator('#roles .targets').first().locator('li');
  expect((await names.allInnerTexts()).slice(0, 3).map((text) => /role-\d+/.exec(text)![0])).toEqual([
    ...['role-250', 'role-270', 'role-0'],
  ]);
  await tab.getByText('288 more roles').waitFor();
  expect(await tab.evaluate('document.documentElement.scrollHeight')).toBeLessThanOrEqual(2 * 1080);
  await tab.locator('#filter').fill('-177');
  await tab.getByText('288 more roles').waitFor({ state: 'detached' });
  expect(await names.count()).toBe(1);
  expect(complaints).toEqual([]);
});

testOnce('without JavaScript, many problems of a kind are one row with their number', async () => {
  const many = Array.from({ length: 90 }, (_, i) => probeStatusOf(`store/store-${i}`, refused));
  const { url } = await serve({ probes: [...many, probeStatusOf('cluster/dc2', refused)] });
  const context = await browser.newContext({ javaScriptEnabled: false });
  atTestEnd(() => context.close());
  const tab = await context.newPage();
  await tab.goto(url);
  const rows = await tab.locator('main li').allInnerTexts();
  expect(rows).toHaveLength(2);
  expect(rows[0]).toMatch(/^critical store store-0 refuses connections.* 89 more of this kind\.$/);
  expect(rows[1]).toMatch(/^critical cluster dc2 refuses connections/);
});

testOnce('without JavaScript the verdict can be read, and markup from outside stays text', async () => {
  const { url } = await serve({ probes: [probeStatusOf('store/<b>main</b>', refused)] });
  const context = await browser.newContext({ javaScriptEnabled: false });
  atTestEnd(() => context.close());
  const tab = await context.newPage();
  await tab.goto(url);
  expect(await tab.locator('h1').innerText()).toBe(
    'Store <b>main< refuses connections (since 00:00:30 UTC).',
  );
  expect(await tab.locator('main li').allInnerTexts()).toEqual([
    'critical store <b>main</b> refuses connections: connection refused, since 2026-01-01T00:00:30.000Z. See svc_store_failures_total for the reason. refused or unreachable: check the server; credentials: check the account of the agent. SvcStoreDown',
  ]);
  const runbook = await tab.locator('main li a').getAttribute('href');
  expect(await (await fetch(new URL(runbook!, url))).text()).toMatch(/^# SvcStoreDown/);
  expect(await tab.locator('main b').count()).toBe(0);
  // It is no link, and does not look like one.
  const look = 'getComputedStyle(document.querySelector("h1")).textDecorationLine';
  expect(await tab.evaluate(look)).toBe('none');
});

testOnce('the selected window can be seen with forced colours', async () => {
  const { url } = await serve({ probes: [probeStatusOf('health/frontend')] });
  const page = await browser.newPage({ forcedColors: 'active' });
  const { tab } = await open(url, {}, page);
  await tab.locator('.segments input').first().waitFor({ state: 'attached' });
  const colours = await tab.evaluate(
    `[...document.querySelectorAll('.segments span')].map((one) => getComputedStyle(one).backgroundColor)`,
  );
  expect(new Set(colours as string[]).size).toBe(2);
});

testOnce('the verification of a backup shows how far it is', async () => {
  const nightly = (progress: Pick<ProbeStatus, 'progress'>) => ({
    probes: [probeStatusOf('backup/nightly', {}, progress)],
    backups: [{ backup: 'nightly', type: 'full' as const, rpoSeconds: 86_400, rtoSeconds: 14_400 }],
  });
  const progress = { doneBytes: 3 * 2 ** 30, totalBytes: 4 * 2 ** 30, bytesPerSecond: 64 * 2 ** 20 };
  const { url, change } = await serve(nightly({ progress }));
  const { tab, complaints } = await open(url);
  const row = tab.locator('tbody tr', { hasText: 'nightly' });
  expect(await row.innerText()).toContain('verifying, 75 %');
  expect(await row.innerText()).toContain('3.0 GiB of 4.0 GiB, 64.0 MiB/s, 16 s left');
  // The size of this archive is not known.
  change(nightly({ progress: { ...progress, totalBytes: 0 } }));
  await until('no share is shown', async () => !(await row.innerText()).includes('%'));
  expect(await row.innerText()).toMatch(/verifying\s+3\.0 GiB/);
  expect(complaints).toEqual([]);
});

onlyShort(describe)('of the built agent', () => {
  test('a role that fails its health check, and its recovery', async () => {
    let status = 200;
    const port = await serving((_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ok: status === 200, msg: status === 200 ? 'OK' : '<b>overloaded</b>' }));
    });
    const at = folder();
    atTestEnd(async () => at.remove());
    const file = agentFile(at.path, {
      more: `  frontend: {health: {url: 'http://127.0.0.1:${port}/health', interval: 1s, timeout: 500ms, failureThreshold: 1}}\nroles: [frontend]\n`,
    });
    const agent = await startAgent(file);
    atTestEnd(() => agent.end());
    const { tab, complaints } = await open(`http://${agent.address('admin')}/`);
    await tab.locator('.banner.good').waitFor();
    status = 503;
    await tab.locator('.banner.bad').waitFor();
    expect(await headline(tab)).toBe('Role frontend is down');
    status = 200;
    await tab.locator('.banner.good').waitFor();
    expect(complaints).toEqual([]);
  });

  test('a listener with a bearer token: a browser asks for it and shows everything, without a cookie', async () => {
    const at = folder();
    atTestEnd(async () => at.remove());
    const token = 'n0t-to-be-guessed';
    writeFileSync(join(at.path, 'token'), `${token}\n`);
    const file = agentFile(at.path, {
      admin: `auth: {bearer: {file: ${join(at.path, 'token')}}}`,
      more: `  frontend: {health: {url: 'tcp://127.0.0.1:1', interval: 1s, timeout: 500ms, failureThreshold: 1}}\nroles: [frontend]\n`,
    });
    const agent = await startAgent(file);
    atTestEnd(() => agent.end());
    const url = `http://${agent.address('admin')}/`;
    const stranger = await browser.newContext({ httpCredentials: { username: '', password: 'wrong' } });
    atTestEnd(() => stranger.close());
    expect((await (await stranger.newPage()).goto(url))?.status()).toBe(401);

    const context = await browser.newContext({ httpCredentials: { username: '', password: token } });
    atTestEnd(() => context.close());
    const tab = await context.newPage();
    const { complaints } = await open(url, {}, tab);
    await tab.locator('.banner.bad').waitFor();
    expect(await headline(tab)).toBe('Role frontend is down');
    await tab.locator('#link', { hasText: 'live' }).waitFor();
    expect(complaints.filter((complaint) => !complaint.includes('401'))).toEqual([]);
    expect(await context.cookies()).toEqual([]);
    expect(await tab.evaluate('localStorage.length + sessionStorage.length')).toBe(0);
  });

  test('a page of another site cannot have a browser run a probe', async () => {
    const at = folder();
    atTestEnd(async () => at.remove());
    const asked: string[] = [];
    const port = await serving((_request, response) => {
      asked.push('health');
      response.end('{"ok":true,"msg":"OK"}');
    });
    const file = agentFile(at.path, {
      more: `  frontend: {health: {url: 'http://127.0.0.1:${port}/health', interval: 1h}}\nroles: [frontend]\n`,
    });
    const agent = await startAgent(file);
    atTestEnd(() => agent.end());
    const probe = `http://${agent.address('admin')}/probe?name=health/frontend`;
    await until('the first run is over', async () => asked.length === 1);
    const sitePort = await serving((_request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(
        `<!doctype html><title>other</title><img src="${probe}"><script src="${probe}"></script><iframe src="${probe}"></iframe>`,
      );
    });
    const tab = await browser.newPage();
    atTestEnd(() => tab.close());
    for (const host of ['127.0.0.1', 'localhost']) {
      await tab.goto(`http://${host}:${sitePort}/`, { waitUntil: 'load' });
    }
    // The browser withholds the answers from the page; the agent counts what it refused.
    const own = await (await fetch(`http://${agent.address('admin')}/metrics`)).text();
    expect(own).toMatch(
      /^svc_agent_dropped_total\{[^}]*component="pull"[^}]*reason="unauthorized"[^}]*\} 6$/m,
    );
    expect(asked).toEqual(['health']);
    // An address that a person opens is answered.
    expect((await tab.goto(probe))?.status()).toBe(200);
  });
});
