import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

interface Options {
  pool?: 'threads';
  isolate?: boolean;
  exclude?: string[];
  maxWorkers?: number;
  sequence?: { groupOrder: number };
  testTimeout?: number;
  setupFiles?: string[];
}

/** Time-outs end what hangs. No test expects a time, and a busy machine needs many times what an idle one does. */
const project = (name: string, include: string[], options: Options) => ({
  test: {
    name,
    include,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    setupFiles: 'test/environment.ts',
    expect: { requireAssertions: true },
    ...options,
  },
});

const filesOf = (folder: string) => [`test/${folder}/**/*.test.ts`];

/**
 * Files share the modules of their worker: to load the sources anew for every file takes longer than its tests. So a
 * helper must not register hooks or keep state at the top of its module; `onTestFinished` belongs to the test.
 */
const shared = { isolate: false };

/** Pure code: each worker loads the sources once, so that more workers than cores cost more than they save. */
const pure: Options = { ...shared, pool: 'threads', maxWorkers: 2 };
/** After those. Many files wait for servers and programs: more of them run than there are cores. */
const waiting: Options = { maxWorkers: 4, sequence: { groupOrder: 1 } };

/** Files that change their whole process, for they become another user or replace modules, or that measure its memory. */
const alone = [
  'archive-directory-denied',
  'command-prints-without-end',
  'copytruncate',
  'permission-denied',
  'reload-refused',
  'rotated-in-unusual-ways',
  'scrape-body-is-hostile',
  'statsd-burst',
  'statsd-million-tag-values',
  'statsd-summaries-over-the-limit',
].map((name) => `test/fault/${name}.test.ts`);

/** Files that only `npm run long` and `npm run nightly` run, and those that only the latter does. */
const longFiles = 'test/**/*.long.test.ts';
const nightlyFiles = 'test/**/*.nightly.test.ts';

const size = process.env.TEST_SIZE ?? '';

/** Files that `npm test` runs in a small size: they ask `bySize` of test/size.ts. */
const sized = [
  'e2e/backup-run',
  'e2e/dashboards',
  'e2e/demo',
  'e2e/domains-and-archives',
  'e2e/killed',
  'e2e/one-reporter',
  'e2e/rotation-kills',
  'e2e/rotation-programs',
  'e2e/shipped-system',
  'e2e/status-page',
  'e2e/stop',
  'fault/hosted-endpoint-answers',
  'fault/recover-interrupted',
  'fault/reload-with-many-log-series',
  'fault/scrape-series-over-the-limit',
  'fault/state-killed-holder',
  'fault/state-restart',
  'fault/statsd-million-tag-values',
  'integration/backups/log-segments',
  'integration/example-service',
  'integration/mutated-config',
  'integration/rotation-model/*',
  'integration/tailer-model',
  'unit/agent/verdict/courses',
  'unit/agent/verdict/fleet',
  'unit/config/any-bytes',
  'unit/core/byte-table',
  'unit/core/decimal',
  'unit/core/protobuf',
  'unit/core/registry-model',
  'unit/hosted/snappy',
  'unit/logs/checkpoint',
  'unit/logs/json-reader',
  'unit/probes/domains/failovers',
  'unit/pull/line-cache',
  'unit/push/conservation',
  'unit/push/lines',
  'unit/scrape/pages-model',
  'unit/state/snapshot',
  'unit/statsd/reference',
].map((name) => `test/${name}.test.ts`);
/** Those of which only the nightly run does more. */
const sizedAtNight = ['e2e/mutated-config', 'integration/rules/alerts', 'integration/rules/shipped'].map(
  (name) => `test/${name}.test.ts`,
);

const usualWithout = (exclude: string[]) => {
  const others = [...exclude, longFiles, nightlyFiles];
  return [
    project('unit', filesOf('unit'), { ...pure, exclude }),
    project('contract', filesOf('contract'), { ...pure, exclude }),
    project('integration', filesOf('integration'), { ...waiting, ...shared, exclude: others }),
    project('fault', filesOf('fault'), { ...waiting, ...shared, exclude: [...alone, ...others] }),
    project('fault-alone', alone, { ...waiting, exclude }),
    project('e2e', filesOf('e2e'), { ...waiting, ...shared, exclude: others, testTimeout: 600_000 }),
  ];
};

/** Files in which a real Prometheus evaluates rules with windows of seconds, or a demo is watched. */
const alerting = [
  'alerts-live',
  'backup-alerts',
  'demo-tutorial',
  'healthy',
  'one-cause',
  'recorded-alerts',
  'recorded-dashboards',
  'truth-table',
  'two-cluster-agents',
  'two-environments',
].map((name) => `test/e2e/${name}.long.test.ts`);
const alertingAtNight = [
  ...alerting,
  ...['demo-alert', 'outage-ends'].map((name) => `test/e2e/${name}.nightly.test.ts`),
];

/** Files that take a minute or more. They begin first, so that the others end beside them. */
const longest = [
  'e2e/limits-as-shipped.long',
  'e2e/demo-tutorial.long',
  'e2e/recovery-point.long',
  'e2e/rehearsal.long',
  'e2e/backup-reports.long',
  'e2e/alerts-live.long',
  'e2e/recover-at-night.long',
  'e2e/truth-table.long',
  'e2e/one-cause.long',
  'e2e/status-page',
  'e2e/recover',
  'e2e/backups',
  'fault/wall-clock-jumps',
  'fault/agent-restarted-between-two-faults',
  'integration/rules/alerts',
].map((name) => `test/${name}.test.ts`);

/** The longest come first; in a longer run those that repeat come last. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const last = size === '' ? [] : sized;
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((file) => moduleId.endsWith(file));
      return at >= 0 ? at : longest.length + (last.some((file) => moduleId.endsWith(file)) ? 1 : 0);
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/**
 * Each file has a process of its own, because it measures, kills or uses all there is. Six at once take longer than four: a
 * service that is waited for costs as much as the wait is long. Alerts are judged within seconds: all others leave the processor
 * to those files.
 */
const eachAlone = (name: string, include: string[], options: Options) =>
  project(name, include, { maxWorkers: 4, sequence: { groupOrder: 2 }, ...options });
const inBackground = { setupFiles: ['test/background.ts', 'test/environment.ts'] };
const ofSize = (first: string[], others: string[], testTimeout: number) => [
  eachAlone('alerting', first, { testTimeout }),
  eachAlone('background', others, { ...inBackground, exclude: first, testTimeout }),
];
const long = ofSize(alerting, [longFiles, ...sized], 600_000);
/** All that `npm test` and `npm run long` run. Files of both run once, in the size of the latter. */
const whole = [...usualWithout(sized), ...long];
const nightly = ofSize(alertingAtNight, [longFiles, nightlyFiles, ...sized, ...sizedAtNight], 0);

export default defineConfig({
  test: {
    globalSetup: 'test/run-folder.ts',
    sequence: { sequencer: LongestFirst },
    projects: { long, whole, nightly }[size] ?? usualWithout([]),
  },
});
