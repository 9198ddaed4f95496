import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { folder } from '../run-folder.ts';
import { stopsAtEnd } from '../test-end.ts';
import { pollUntil, until } from '../until.ts';
import { scrapeSeconds, startPlayback } from './live/playback.ts';
import { writeRules } from './live/rules.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * The recorded pages of a real service, played back. Nothing that was well then must alert. Windows are divided by ten, and `for`
 * is that of the live run.
 */

const stops = stopsAtEnd();

/**
 * What was wrong while the pages were recorded: 188 tasks waited in a list that nobody polled, and workflows of the load
 * generator timed out. Other lists had a backlog, and their polls succeeded.
 */
const trueOfTheRecording = [
  'SvcTaskListAbandoned cadence_bench nobody_polls',
  'SvcTaskListStalled cadence_bench nobody_polls',
  'SvcTaskListUnpolled cadence_bench nobody_polls',
  'SvcWorkflowTimeoutShare cadence_bench ',
];

test.skipIf(!hasPrometheus)('over the recorded pages only what was wrong alerts', async () => {
  const { path, remove } = folder();
  stops.push(remove);
  const rules = join(path, 'rules');
  mkdirSync(rules);
  // A busy machine may miss some scrapes in a row: a rate needs two.
  writeRules(rules, { scrapeSeconds, windowSeconds: 10 * scrapeSeconds });
  const files = ['recommended', 'slo'].map((pack) => join(rules, `${pack}.rules.yml`));
  const prometheus = await startPlayback(path, files, (stop) => stops.push(stop));
  // Before the first answers the roles were down, on a busy machine for long enough to alert.
  const ofTheStart = 'count(ALERTS{alertname=~"SvcIncident|SvcService(Down|Recovering)"})';
  await until('the start is forgotten', async () => (await prometheus.value(ofTheStart)) === 0);
  // The metrics that the rules read are there, so the silence is meaningful.
  for (const metric of [
    'svc_persistence_requests',
    'svc_matching_poll_success',
    'svc_matching_tasklist_backlog',
  ])
    expect(await prometheus.value(`count(${metric})`), metric).toBeGreaterThan(0);
  const firing = async () =>
    (await prometheus.firing())
      .map(
        ({ alertname, domain = '', tasklist = '', ...rest }) =>
          `${alertname} ${domain || rest.svc_service || rest.job || ''} ${tasklist}`,
      )
      .sort();
  // A busy machine evaluates a rule later than its windows end, and may lose the answers of a role for a while.
  const alerts = await pollUntil(firing, (all) => isDeepStrictEqual(all, trueOfTheRecording));
  expect(alerts).toEqual(trueOfTheRecording);
});
