import { expect, onTestFinished, test } from 'vitest';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { hasAlertmanager, startAlertmanager } from './alertmanager.ts';
import { startAgent } from './process.ts';

test.skipIf(!hasAlertmanager)(
  'while planned work is under way, Alertmanager holds back what it stops, in its cluster, and no loss of data',
  async () => {
    const alertmanager = await startAlertmanager();
    try {
      const alert = (alertname: string, cluster: string, severity: string) => ({
        labels: { alertname, cluster, severity, pack: 'recommended' },
        annotations: {},
      });
      const response = await fetch(`http://${alertmanager.address}/api/v2/alerts`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify([
          alert('SvcMaintenance', 'dc1', 'info'),
          alert('SvcRoleUnhealthy', 'dc1', 'critical'),
          alert('SvcBackupAge', 'dc1', 'critical'),
          alert('SvcRoleUnhealthy', 'dc2', 'critical'),
        ]),
      });
      expect(response.status).toBe(200);
      const states = await until('all are judged', async () => {
        const held = await alertmanager.held();
        const isJudged = held.length === 4 && held.every(({ status }) => status.state !== 'unprocessed');
        return (
          isJudged &&
          held.map(({ labels, status }) => `${labels.alertname} ${labels.cluster} ${status.state}`)
        );
      });
      expect(states.sort()).toEqual([
        'SvcBackupAge dc1 active',
        'SvcMaintenance dc1 active',
        'SvcRoleUnhealthy dc1 suppressed',
        'SvcRoleUnhealthy dc2 active',
      ]);
    } finally {
      await alertmanager.stop();
    }
  },
);

test('a window of the configuration is planned work: the verdict and svc_maintenance say so', async () => {
  const place = folder();
  onTestFinished(place.remove);
  const days = '[monday, tuesday, wednesday, thursday, friday, saturday, sunday]';
  const more = `maintenance: {windows: [{days: ${days}, start: "00:00", duration: 24h, reason: disks}]}\n`;
  const agent = await startAgent(agentFile(place.path, { more }));
  onTestFinished(() => void agent.end('SIGKILL'));
  const page = async (path: string) => (await fetch(`http://${agent.address('admin')}/${path}`)).text();
  await until('svc_maintenance is 1', async () =>
    /^svc_maintenance(?:\{.*\})? 1$/m.test(await page('metrics')),
  );
  const { verdict, maintenance, maintenanceReason } = JSON.parse(await page('api/status'));
  expect(maintenanceReason).toBe('disks');
  expect(verdict.sentence).toMatch(/ Planned work until .*: disks\.$/);
  // The window of today ends at midnight, when the window of tomorrow begins.
  expect(maintenance).toMatch(/T00:00:00\.\d{3}Z$/);
});
