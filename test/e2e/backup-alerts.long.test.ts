import { copyFileSync, mkdirSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { until } from '../until.ts';
import { type LiveAgent, startLiveAgent } from './live/agents.ts';
import { type LivePrometheus, startLivePrometheus } from './live/prometheus.ts';
import { writeRules } from './live/rules.ts';
import { command } from './process.ts';
import { hasPrometheus } from './prometheus.ts';

// Every alert on backups and recovery, live: the built agent reads real files, a real Prometheus has the shipped rules.

const place = newFolder(afterAll);
const rules = join(place, 'rules');
const dayMs = 864e5;
/** A dump that states when it began, as pg_dump --verbose writes it. */
const dumpOf = (startMs: number): Buffer =>
  gzipSync(
    [
      ...['--', '-- PostgreSQL database dump', '--', ''],
      `-- Started on ${new Date(startMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`,
      ...['', 'CREATE TABLE executions (i int);', ''],
      ...['--', '-- PostgreSQL database dump complete', '--', ''],
    ].join('\n'),
  );
const directory = (name: string) => join(place, 'backups', name);

/** Writes a dump that ended this long ago, with its start in its name. */
function writeDump(backup: string, agoMs: number): string {
  const endMs = Date.now() - agoMs;
  const name = `${new Date(endMs).toISOString().replace(/[-:]|\.\d+/g, '')}.sql.gz`;
  mkdirSync(directory(backup), { recursive: true });
  const path = join(directory(backup), name);
  writeFileSync(path, dumpOf(endMs));
  utimesSync(path, endMs / 1000, endMs / 1000);
  return path;
}

const files = (name: string, more: object = {}) => ({
  name,
  store: name,
  database: 'persistence',
  type: 'full',
  source: {
    files: {
      directory: directory(name),
      pattern: '^(?<time>\\d{8}T\\d{6}Z)\\.sql\\.gz$',
      settle: '1s',
      takenFrom: 'primary',
    },
  },
  integrity: { level: 'full' },
  interval: '500ms',
  ...more,
});
const ahead = () => {
  const startMs = Date.now() + 20 * 60e3;
  const [start, end] = [0, 60e3].map((ms) => new Date(startMs + ms).toISOString());
  return JSON.stringify({ backups: [{ id: 'a', start, end, size: 1000, verified: true }] });
};
const healthy = 'healthy';
/** A backup for each fault, each of a separate store, with the alerts that the fault causes. */
const faults: Readonly<Record<string, readonly string[]>> = {
  old: ['SvcBackupAge', 'SvcBackupFailures', 'SvcRecoveryObjectiveMissed'],
  never: ['SvcBackupNeverSucceeded', 'SvcRecoveryObjectiveMissed'],
  failing: ['SvcBackupFailures'],
  damaged: [
    'SvcBackupIntegrity',
    'SvcBackupNeverSucceeded',
    'SvcRecoveryObjectiveMissed',
    'SvcBackupFailures',
  ],
  offsite: ['SvcBackupOffsiteAge'],
  few: ['SvcBackupRetention'],
  // A backup from the future shows no recovery point.
  skewed: ['SvcBackupClockSkew', 'SvcRecoveryObjectiveMissed'],
};

let agent: LiveAgent;
let prometheus: LivePrometheus;

beforeAll(async () => {
  if (!hasPrometheus) return;
  mkdirSync(rules);
  writeRules(rules);
  writeFileSync(join(place, 'report.json'), ahead());
  writeDump(healthy, 2000);
  writeDump('old', 3 * dayMs);
  mkdirSync(directory('never'), { recursive: true });
  writeDump('failing', 2000);
  const damaged = writeDump('damaged', 2000);
  truncateSync(damaged, statSync(damaged).size - 8);
  const copied = writeDump('offsite', 2 * dayMs);
  writeDump('offsite', 2000);
  mkdirSync(join(place, 'away'));
  copyFileSync(copied, join(place, 'away', copied.split('/').at(-1)!));
  writeDump('few', 2000);
  const stores = [healthy, ...Object.keys(faults)].map((name) => ({
    ...{ name, kind: 'mysql', address: '127.0.0.1:1', interval: '1h' },
    databases: { persistence: 'svc' },
  }));
  agent = await startLiveAgent(place, 'backups', {
    stores,
    backups: [
      ...[healthy, 'old', 'never', 'failing', 'damaged'].map((name) => files(name)),
      files('offsite', {
        offsite: { directory: join(place, 'away'), maxLag: '0s' },
        schedule: { every: '2d' },
      }),
      files('few', { retention: { minCount: 3 } }),
      files('skewed', { source: { command: { command: ['cat', join(place, 'report.json')] } } }),
    ],
  });
  prometheus = await startLivePrometheus(place, {
    alertmanager: '127.0.0.1:1',
    ruleFiles: ['recommended', 'recording'].map((pack) => join(rules, `${pack}.rules.yml`)),
    targets: { 'svc-agent': [{ address: agent.address, cluster: 'dc1' }] },
  });
});
afterAll(async () => {
  await prometheus?.end();
  await agent?.stop();
});

const firing = async () =>
  (await prometheus.firing()).filter(({ alertname }) => /^Svc(?:Backup|Recovery)/.test(alertname));
const of = (alerts: Awaited<ReturnType<typeof firing>>, store: string) =>
  [...new Set(alerts.filter((alert) => alert.store === store).map(({ alertname }) => alertname))].sort();

test.skipIf(!hasPrometheus)(
  'each fault makes its alerts and no other; a backup that is well makes none',
  async () => {
    const file = join(place, 'backups.yaml');
    await until('the failing backup is known', async () => {
      const last = await prometheus.value('svc_backup_last_success_timestamp_seconds{backup="failing"}');
      return last > 0;
    });
    expect(
      command(['backup', 'run', '--job', 'failing', '-c', file, '--', 'sh', '-c', 'exit 3']).status,
    ).toBe(3);
    const wanted = Object.fromEntries(
      Object.entries(faults).map(([name, alerts]) => [name, [...alerts].sort()]),
    );
    let seen: Record<string, string[]> = {};
    await until('the alerts', async () => {
      const alerts = await firing();
      seen = Object.fromEntries(Object.keys(faults).map((store) => [store, of(alerts, store)]));
      return JSON.stringify(seen) === JSON.stringify(wanted);
    }).catch(() => {});
    expect(seen).toEqual(wanted);
    expect(of(await firing(), healthy)).toEqual([]);
  },
);

test.skipIf(!hasPrometheus)('the alerts end with their faults', async () => {
  for (const name of ['old', 'never', 'damaged', 'offsite']) {
    rmSync(directory(name), { recursive: true });
    const path = writeDump(name, 2000);
    if (name === 'offsite') copyFileSync(path, join(place, 'away', path.split('/').at(-1)!));
  }
  for (const days of [1, 2]) writeDump('few', days * dayMs);
  writeDump('failing', 0);
  await until('no alert', async () => {
    const alerts = (await firing()).filter(({ store }) => store !== 'skewed');
    if (alerts.length > 0)
      throw new Error(JSON.stringify(alerts.map(({ alertname, store }) => [alertname, store])));
    return true;
  });
});
