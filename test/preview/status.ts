import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import type { BackupReport, ProbeStatus, StatusReport } from '../../src/agent/report.ts';
import { type ManualClock, manualClock } from '../clock.ts';
import { servePage } from '../status-page.ts';
import { probeStatusOf, statusReportOf } from '../status-report.ts';
import { writePicture } from './picture.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const roles = ['frontend', 'history', 'matching', 'worker'];

/** A number between 0 and 1, the same for the same arguments. */
function noise(seed: number, at: number): number {
  const x = Math.sin(seed * 127.1 + at * 311.7) * 43_758.5453;
  return x - Math.floor(x);
}

const text = (ms: number) => new Date(ms).toISOString();

const check = (name: string, severity: string, found: string, holds: boolean, why = '', set = '') => ({
  check: name,
  severity,
  found,
  holds,
  ...(holds ? {} : { why, set }),
});

function storeDetails(database: string, isIll: boolean): Record<string, unknown> {
  return {
    server: 'PostgreSQL 16.4',
    schema: database === 'persistence' ? '1.11' : '1.9',
    connections: { active: 9, idle: 34 },
    connectionsMax: 200,
    checks: [
      check(
        'archive_timeout',
        'recovery_weak',
        'archive_timeout = 0',
        !isIll || database === 'visibility',
        'Without a timeout a quiet server archives its last segment only when it is full: hours of changes may be lost.',
        'archive_timeout = 60s',
      ),
      ...['archive_mode', 'archiver', 'durable_settings', 'wal_level', 'wraparound', 'replica'].map((name) =>
        check(name, 'recovery_weak', `${name} = on`, true),
      ),
    ],
  };
}

function backupsAt(nowMs: number): BackupReport[] {
  const one = (
    backup: string,
    type: BackupReport['type'],
    ageMs: number,
    rpoSeconds: number,
    bytes: number,
  ) => ({
    backup,
    type,
    store: 'main',
    database: 'persistence',
    rpoSeconds,
    rtoSeconds: 14_400,
    lastSuccess: text(nowMs - ageMs),
    recoveryPoint: text(nowMs - ageMs),
    bytes,
    durationSeconds: type === 'log' ? 0.4 : 412,
    integrityOk: true,
    offsite: text(nowMs - ageMs - 20 * minuteMs),
    retentionKept: true,
  });
  return [
    one('nightly', 'full', 7.4 * hourMs, 86_400, 41e9),
    one('wal', 'log', 1.5 * minuteMs, 300, 16_777_216),
  ];
}

/** The report of the example. Its only variation is whether the store, and with it the roles, is down. */
function reportAt(nowMs: number, startMs: number, isIll: boolean): StatusReport {
  const elapsed = (nowMs - startMs) / 1e3;
  const fellMs = startMs + 4 * hourMs - 3.2 * minuteMs;
  const isDown = isIll && nowMs >= fellMs;
  // Matching restarted an hour and a half before.
  const restartMs = startMs + 2.5 * hourMs;
  const isRestarting = nowMs >= restartMs && nowMs < restartMs + 80_000;
  const step = Math.floor(nowMs / 5_000);
  const at = text(nowMs - 800);
  const probe = (
    name: `${ProbeStatus['kind']}/${string}`,
    durationMs: number,
    down: ProbeStatus['last'] | false,
    more = {},
    since = startMs - 52 * hourMs,
  ) =>
    probeStatusOf(name, down ? { ...down, at } : { at, durationMs, ...more }, {
      target: name.startsWith('store') ? 'db-1.internal:5432' : '10.0.4.12:7933',
      since: text(down ? (isDown ? fellMs + 5_000 : restartMs) : since),
      nextRun: text(nowMs + 9_000),
    });
  const refused = { ok: false, reason: 'refused' as const, msg: 'connection refused', durationMs: 1, at };
  const unwell = {
    ok: false,
    reason: 'persistence' as const,
    msg: 'the store does not answer',
    durationMs: 8,
    at,
  };
  const spike = noise(9, Math.floor(step / 30)) > 0.93 ? 30 * noise(3, step) : 0;
  const errors = isDown ? (nowMs - fellMs) / 90 : 0;
  const entriesOf = (role: string, share: number) => ({
    service: role,
    levels: {
      info: Math.floor(elapsed * 40 * share + 30 * noise(share * 10, step)),
      warn: Math.floor(elapsed * 0.8 * share + errors * 0.3),
      error: Math.floor(elapsed * 0.02 * share + errors * share),
    },
  });
  const entries = roles.map((role, i) => entriesOf(role, [1.4, 2.2, 1.1, 0.5][i]!));
  const lastErrors = [
    [
      'history',
      'persistence.Client',
      'Operation failed with internal error.: dial tcp 10.0.7.3:5432: connect: connection refused',
    ],
    [
      'matching',
      'taskListManager',
      'Persistent store operation failure: UpdateTaskList: context deadline exceeded',
    ],
    ['frontend', 'api.handler', 'DBUnavailable Error: GetWorkflowExecution: password=… host=db-1.internal'],
    ['history', 'shardController', 'Error updating shard: persistence unavailable'],
  ].map(([service = '', logger = '', msg = ''], i) => ({
    at: text((isDown ? nowMs : startMs + 2.51 * hourMs) - (i + 1) * 1_900),
    service,
    level: 'error',
    logger,
    msg,
  }));
  const health = roles.map((role, i) =>
    probe(
      `health/${role}`,
      2.5 + i + noise(i, step) * 2,
      isDown ? unwell : role === 'matching' && isRestarting && refused,
      {},
      role === 'matching' && nowMs > restartMs ? restartMs + 80_000 : undefined,
    ),
  );
  const chain = {
    recoveryPoint: text(nowMs - 1.5 * minuteMs),
    links: [
      { backup: 'nightly', type: 'full', what: 'base-2026-01-01', to: text(nowMs - 7.4 * hourMs) },
      {
        backup: 'wal',
        type: 'log',
        what: '0000000100000A3C to 0000000100000A91',
        to: text(nowMs - 1.5 * minuteMs),
      },
    ],
  };
  return statusReportOf({
    now: text(nowMs),
    version: '1.4.0',
    instance: 'wf-prod-3',
    startedAt: text(startMs - 52 * hourMs),
    roles,
    process: { rssBytes: (78 + 2 * noise(4, step)) * 2 ** 20, heapBytes: 24e6, cpuSeconds: elapsed * 0.0031 },
    listeners: [
      { listener: 'admin', address: '127.0.0.1:9465', tls: false },
      { listener: 'metrics', address: '0.0.0.0:9464', tls: true },
    ],
    config: { files: ['/etc/svc-agent/agent.yaml', '/etc/workflow/config.yaml'], lastReloadSuccessful: true },
    state: {
      directory: '/var/lib/svc-agent',
      sequence: 18_234 + (step % 1000),
      commitFailures: 0,
      lastCommitAt: at,
    },
    probes: [
      ...health,
      ...['persistence', 'visibility'].map((database) =>
        probe(
          `store/main/${database}`,
          (database === 'visibility' ? 2 + spike / 3 : 4 + spike) + noise(database.length, step) * 3,
          isDown && refused,
          {
            details: storeDetails(database, isIll),
          },
        ),
      ),
      probe('cluster/dc2', 24 + noise(8, step) * 6, false),
      probe('replication/dc1', 3, false, { msg: 'dc2 is 0.8 s behind dc1' }),
      ...['orders', 'billing', 'onboarding'].map((domain) =>
        probe(`domain/${domain}`, 90, false, {
          details: {
            activeCluster: domain === 'billing' ? 'dc2' : 'dc1',
            clusters: ['dc1', 'dc2'],
            failover: { ready: true, why: 'dc2 answers, agrees and is up to date' },
          },
        }),
      ),
      probe('backup/nightly', 30, false, { msg: 'base-2026-01-01 of 04:12' }),
      probe('backup/wal', 4, false, { msg: 'no gap since nightly' }),
      probe('recovery/main/persistence', 1, false, {
        msg: 'recoverable to 90 s ago',
        details: {
          chain,
          drill: {
            procedure: 'database-corruption',
            endMs: nowMs - 9 * 24 * hourMs,
            durationMs: 47 * minuteMs,
          },
        },
      }),
    ],
    scrapes: roles.map((service, i) => ({
      service,
      url: `http://10.0.4.12:900${i}/metrics`,
      up: !(service === 'matching' && isRestarting),
      lastTakenMs: nowMs,
      lastFailure:
        service === 'matching' && isRestarting
          ? { reason: 'refused', what: 'connection refused', atMs: nowMs }
          : undefined,
      failingSinceMs: service === 'matching' && isRestarting ? nowMs : undefined,
      failures: {},
      page: {
        series: [3120, 8460, 2210, 940][i]!,
        samples: 9000,
        bytes: 800_000,
        invalidLines: 0,
        durationMs: 12,
      },
      firstInvalid: undefined,
      vocabulary: 'none',
    })),
    restarts: { matching: nowMs > restartMs + 80_000 ? 1 : 0 },
    domains: [
      { domain: 'orders', activeCluster: 'dc1', failovers: 0 },
      {
        domain: 'billing',
        activeCluster: 'dc2',
        failovers: nowMs > startMs + 3.4 * hourMs ? 1 : 0,
        ...(nowMs > startMs + 3.4 * hourMs ? { lastFailover: text(startMs + 3.4 * hourMs) } : {}),
      },
      { domain: 'onboarding', activeCluster: 'dc1', failovers: 0 },
    ],
    replication: [
      { source: 'dc1', target: 'dc2', lagSeconds: 0.6 + noise(5, step) * 0.8 + spike / 4 },
      { source: 'dc2', target: 'dc1', lagSeconds: 0.4 + noise(6, step) * 0.5 },
    ],
    backups: backupsAt(nowMs),
    logs: roles.map((role) => ({
      path: `/var/log/workflow/${role}.log`,
      services: [role],
      offset: Math.floor(elapsed * 9000),
      lagBytes: 0,
      state: 'following',
    })),
    entries: {
      services: entries,
      loggers: [
        ['history', 'persistence.Client'],
        ['history', 'shardController'],
        ['matching', 'taskListManager'],
        ['frontend', 'api.handler'],
        ['worker', 'archiver'],
      ].map(([service = '', logger = ''], i) => ({
        service,
        logger,
        levels: {
          error: Math.floor((elapsed * 0.04 + errors) / (i + 1)),
          info: Math.floor((elapsed * 50) / (i + 1)),
        },
      })),
      loggerCount: 5,
      lastWords: [],
      lastErrors,
    },
    series: {
      total: 14_902,
      limit: 50_000,
      families: [
        ['svc_history_task_latency', 2304],
        ['svc_persistence_latency', 1980],
        ['svc_frontend_latency', 1460],
        ['svc_persistence_requests', 1210],
        ['svc_matching_tasklist_backlog', 840],
        ['svc_history_task_requests', 610],
        ['other', 6498],
      ].map(([family, series]) => ({ family: String(family), series: Number(series) })),
    },
    refused: [{ family: 'svc_matching_tasklist_backlog', reason: 'limit_metric', count: 214 }],
    drops: [{ component: 'registry', reason: 'forbidden_tag', count: 38_211 }],
  });
}

/** A served page with four hours of history, as the agent would have after them. */
export async function exampleOf(
  isIll: boolean,
): Promise<{ url: string; clock: ManualClock; close(): Promise<void> }> {
  const startMs = Date.now() - 4 * hourMs;
  const clock = manualClock(startMs);
  const served = await servePage(() => reportAt(clock.nowMs(), startMs, isIll), clock);
  served.history.start();
  for (let ms = 0; ms < 4 * hourMs; ms += 5_000) {
    clock.advance(5_000);
    // A sample is taken after a commit, which takes a turn.
    await Promise.resolve().then(() => {});
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
  return { url: served.url, clock, close: served.close };
}

/** Writes pictures of the status page, well and ill, light and dark, into `folder`. */
export async function writeStatusPictures(folder: string, chromiumPath: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
  try {
    for (const [name, isIll] of [
      ['well', false],
      ['ill', true],
    ] as const) {
      const example = await exampleOf(isIll);
      const take = async (file: string, scheme: 'light' | 'dark', width: number, height: number) => {
        const tab = await browser.newPage({ colorScheme: scheme, viewport: { width, height } });
        await tab.goto(example.url);
        await tab.getByText('4 h', { exact: true }).click();
        await tab.waitForFunction(`document.querySelectorAll('[data-plot] canvas').length > 3`);
        await writePicture(tab, join(folder, file));
        await tab.close();
      };
      for (const scheme of ['light', 'dark'] as const)
        await take(`status-${name}-${scheme}.webp`, scheme, 1440, 900);
      if (isIll) await take('status-phone.webp', 'light', 360, 780);
      await example.close();
    }
  } finally {
    await browser.close();
  }
}
