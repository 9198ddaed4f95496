import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { type RunningAgent, startAgent } from './process.ts';
import { hasPrometheus, type Prometheus, startPrometheus } from './prometheus.ts';
import { createWriter, keyOf } from './writer.ts';

const place = folder();
const started: { end(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const running of started.splice(0)) await running.end();
  place.remove();
});

async function startBoth(log: string): Promise<{ agent: RunningAgent; prometheus: Prometheus }> {
  const config = agentFile(place.path, { logs: log });
  const agent = await startAgent(config);
  started.push(agent);
  const prometheus = await startPrometheus(place.path, { 'svc-agent': agent.address('metrics') });
  started.push(prometheus);
  return { agent, prometheus };
}

describe('what Prometheus holds', () => {
  test.skipIf(!hasPrometheus)(
    'equals the lines written, by level and logger, through three rotations by rename and three by copytruncate',
    async () => {
      const log = join(place.path, 'history.log');
      const writer = createWriter(log);
      const { prometheus } = await startBoth(log);

      const held = async () => {
        const rows = await prometheus.query('svc_log_entries_total{svc_service="history"}');
        const byKey = new Map(rows.map(({ metric, value }) => [keyOf(metric.level!, metric.logger), value]));
        return { byKey, sum: rows.reduce((sum, { value }) => sum + value, 0) };
      };
      const caughtUp = () =>
        until('Prometheus holds every line', async () => (await held()).sum >= writer.total());

      for (let round = 1; round <= 3; round++) {
        writer.write(5_000);
        writer.rotateByRename(`${log}.renamed-${round}`);
        writer.write(5_000);
        await caughtUp();
        writer.rotateByCopyTruncate(`${log}.copied-${round}`);
        writer.write(5_000);
      }
      await caughtUp();
      writer.close();

      const { byKey } = await held();
      const zero = [...byKey].filter(([, value]) => value === 0).map(([key]) => key);
      for (const key of zero) byKey.delete(key);
      expect(Object.fromEntries(byKey)).toEqual(Object.fromEntries(writer.written));
    },
  );
});
