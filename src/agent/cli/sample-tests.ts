import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { errorText, faultLine, nearest, usageError } from '../../core/errors.ts';
import { readBounded, unreadableFile } from '../config/environment.ts';
import { errorWords, issueFaults } from '../config/issues.ts';
import { faultAt, type MapNode, plainValue } from '../config/tree.ts';
import type { AgentConfig, PlacedFault } from '../config/types.ts';
import { readYaml } from '../config/yaml.ts';
import { createReadSecret } from '../read-secret.ts';
import { createSamples, type SampledSeries } from '../samples.ts';
import { command, configurationOptions, configured } from './arguments.ts';
import { type Io, paint } from './io.ts';

const usage = `Usage: svc-agent test FILE... [-c FILE] [--json]

Tests log rules and vocabularies: passes sample lines, pages and datagrams through the configuration, and compares the
resulting series with the expected ones. Exports nothing, reads no log and changes no state. A test file:

  config: agent.yaml                  # relative to this file; -c wins
  tests:
    - name: slow queries are counted by shard
      role: history
      lines: |                        # of the role's log; or linesFile: sample.log
        {"level":"warn","ts":"2026-01-01T00:00:00Z","msg":"slow query","shard-id":7}
      page: |                         # of the role's own metrics; or pageFile
        persistence_requests{operation="UpdateShard"} 3
      datagrams: |                    # lines of statsd
        workflow_started:1|c|#domain:orders
      expect:
        my_slow_queries_total{shard="7"}: 1
        svc_log_lines_dropped_total{reason="invalid_json"}: 0
        svc_log_entries_total{level="error"}: 0
        my_slow_queries_total{shard="8"}: ~

A key of expect selects every series of that name with those labels; its value is their sum. NaN, +Inf and -Inf are
values, too, and ~ means that there is no such series. Buckets, sums and counts of a histogram have their own names:
my_seconds_count, my_seconds_bucket{le="1"}.
A test file, and each file that it names, has at most 64 MiB.
Exit status: 0 all tests passed; 1 a test failed; 2 wrong usage, or an invalid configuration or test file.
`;

const sampleText = z.string();

/** The values that have no digits, as the text exposition writes them. */
const spelled: ReadonlyMap<unknown, number> = new Map([
  ['NaN', Number.NaN],
  ['+Inf', Number.POSITIVE_INFINITY],
  ['-Inf', Number.NEGATIVE_INFINITY],
]);
const expectedValue = z.preprocess(
  (value) => spelled.get(value) ?? value,
  z.custom<number | null>(
    (value) => value === null || typeof value === 'number',
    'not a number; use digits, NaN, +Inf or -Inf, or ~ for no such series',
  ),
);

const sampleTest = z
  .strictObject({
    name: z.string().min(1),
    role: z.string().min(1),
    lines: sampleText.optional(),
    linesFile: z.string().min(1).optional(),
    page: sampleText.optional(),
    pageFile: z.string().min(1).optional(),
    datagrams: sampleText.optional(),
    expect: z
      .record(z.string(), expectedValue)
      .refine((wanted) => Object.keys(wanted).length > 0, 'empty; name at least one series'),
  })
  .superRefine(({ lines, linesFile, page, pageFile, datagrams }, { addIssue }) => {
    const twice = (file: string, text: string) =>
      addIssue({ code: 'custom', path: [file], message: `given beside ${text}; use one of them` });
    if (lines !== undefined && linesFile !== undefined) twice('linesFile', 'lines');
    if (page !== undefined && pageFile !== undefined) twice('pageFile', 'page');
    if ([lines, linesFile, page, pageFile, datagrams].every((sample) => sample === undefined))
      addIssue({ code: 'custom', message: 'no sample; give lines, page or datagrams' });
  });
type SampleTest = z.infer<typeof sampleTest>;

const testFile = z.strictObject({
  config: z.string().min(1).optional(),
  tests: z.array(sampleTest).min(1),
});

interface TestFile {
  path: string;
  /** The name as it was given. */
  name: string;
  tree: MapNode;
  config: string | undefined;
  tests: readonly SampleTest[];
}

/** The result of a test: the expectations that were not met; empty if it passed. */
interface TestResult {
  file: string;
  name: string;
  failures: string[];
}

const form = { name: 'test', usage, options: configurationOptions, most: Infinity } as const;

/** Runs `svc-agent test`: prints the outcome of every test of every file. */
export const sampleTests = command(form, async (values, io, names) => {
  const allowed = 'see svc-agent test --help';
  if (names.length === 0) throw usageError('svc-agent test', 'no test file', undefined, allowed);
  const results: TestResult[] = [];
  for (const file of names.map((name) => readTestFile(name, io))) {
    const { config } = await configured({ ...values, config: values.config ?? file.config }, io);
    refuse(unknownRoles(file, config), file.name, io);
    for (const test of file.tests) {
      const failures = await failuresOf(test, config, file.path, io);
      results.push({ file: file.path, name: test.name, failures });
    }
  }
  io.stdout(values.json ? `${JSON.stringify(results)}\n` : resultsText(results, io));
  return results.some(({ failures }) => failures.length > 0) ? 1 : 0;
});

/** Prints the faults of a test file. Throws `usage` if there are any. */
function refuse(faults: readonly PlacedFault[], name: string, { stderr }: Io): void {
  for (const fault of faults) stderr(`${faultLine(fault)}\n`);
  if (faults.length > 0) throw usageError(name, 'not a test file', undefined, 'see svc-agent test --help');
}

/** Faults for the roles of tests that the configuration does not have. */
function unknownRoles({ tests, tree }: TestFile, { services }: AgentConfig): PlacedFault[] {
  const known = services.map(({ name }) => name);
  return tests.flatMap(({ role }, index) => {
    if (known.includes(role)) return [];
    const near = nearest(role, known);
    const allowed = near ? `did you mean ${near}?` : `services has ${known.join(', ') || 'none'}`;
    return [faultAt(tree, ['tests', index, 'role'], `unknown role; ${allowed}`)];
  });
}

function readTestFile(name: string, io: Io): TestFile {
  const path = resolve(io.cwd, name);
  const { tree, faults } = readYaml(textOf(path, name), name, {});
  const result = tree && testFile.safeParse(withNulls(tree), { error: errorWords });
  refuse(
    [...faults, ...(result?.success === false ? issueFaults(result.error.issues, tree!) : [])],
    name,
    io,
  );
  const { config, tests } = result!.data!;
  return { path, name, tree: tree!, config: config && resolve(dirname(path), config), tests };
}

/** The file as data. An expected `~` is preserved as null: it means that there is no such series. */
function withNulls(tree: NonNullable<ReturnType<typeof readYaml>['tree']>): unknown {
  const data = plainValue(tree) as { tests?: unknown };
  const list = tree.entries.get('tests')?.node;
  if (list?.kind !== 'list' || !Array.isArray(data.tests)) return data;
  for (const [index, item] of list.items.entries()) {
    const expected = item.kind === 'map' ? item.entries.get('expect')?.node : undefined;
    if (expected?.kind !== 'map') continue;
    const values = [...expected.entries].map(([key, { node }]) => [
      key,
      node.kind === 'scalar' && node.value === null ? null : plainValue(node),
    ]);
    (data.tests[index] as { expect?: unknown }).expect = Object.fromEntries(values);
  }
  return data;
}

/** The maximum size of a test file and of a sample, which is a page or a few minutes of a log. */
const maxSampleBytes = 64 * 1024 * 1024;

function textOf(path: string, name: string): string {
  const refuse = (what: string, allowed: string, cause?: unknown) =>
    usageError(name, what, undefined, allowed, cause);
  let bytes: Buffer;
  try {
    bytes = readBounded(path, maxSampleBytes);
  } catch (cause) {
    const what = unreadableFile(path) ?? `cannot be read, ${errorText(cause)}`;
    throw refuse(what, 'name a file that exists', cause);
  }
  if (bytes.length > maxSampleBytes) throw refuse('larger than 64 MiB', 'name a smaller sample');
  return bytes.toString('utf8');
}

async function failuresOf(test: SampleTest, config: AgentConfig, file: string, io: Io): Promise<string[]> {
  const samples = createSamples(config, { readSecret: createReadSecret(io.env) });
  const sampleOf = (text: string | undefined, name: string | undefined) =>
    text ?? (name === undefined ? undefined : textOf(resolve(dirname(file), name), name));
  try {
    const lines = sampleOf(test.lines, test.linesFile);
    if (lines !== undefined) {
      const bytes = Buffer.from(lines);
      const sink = samples.openLog({ path: test.linesFile ?? 'lines', claimants: [test.role] });
      sink.finish(bytes, sink.write(bytes, 0, bytes.length), bytes.length);
    }
    const page = sampleOf(test.page, test.pageFile);
    if (page !== undefined) await samples.page(test.role, page);
    if (test.datagrams !== undefined) await samples.datagrams(test.role, test.datagrams);
    const series = samples.series();
    return Object.entries(test.expect).flatMap(([selector, wanted]) => mismatch(selector, wanted, series));
  } finally {
    await samples.stop();
  }
}

const selectorForm = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?$/;
const labelForm = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** A series or a selector in parts; the texts of labels are as they are written. */
function partsOf(text: string): { name: string; labels: Set<string> } | undefined {
  const [, name, labels = ''] = selectorForm.exec(text) ?? [];
  return name === undefined
    ? undefined
    : { name, labels: new Set([...labels.matchAll(labelForm)].map(([label]) => label)) };
}

/** Why the selected series differ from the expectation; empty if they do not. */
function mismatch(selector: string, wanted: number | null, series: SampledSeries): string[] {
  const parts = partsOf(selector);
  if (!parts) return [`${selector}: not a selector; use the form name{label="value"}`];
  const ofName = [...series].filter(([text]) => partsOf(text)?.name === parts.name);
  const selected = ofName.filter(([text]) => {
    const { labels } = partsOf(text)!;
    return [...parts.labels].every((label) => labels.has(label));
  });
  // Series of other roles exist at 0 from the start, and explain nothing beside the series that changed.
  const changed = selected.filter(([, { value }]) => value !== 0);
  const shown = [changed, selected, ofName].find(({ length }) => length > 0) ?? [];
  const there = shown.slice(0, mostShown).map(([text, { value }]) => `    ${text} ${value}`);
  if (selected.length === 0) {
    if (wanted === null) return [];
    return [[`${selector}: no such series, expected ${wanted}`, ...there].join('\n')];
  }
  const sum = selected.reduce((total, [, { value }]) => total + value, 0);
  if (wanted !== null && isEqual(sum, wanted)) return [];
  return [[`${selector}: ${sum}, expected ${wanted ?? 'no such series'}`, ...there].join('\n')];
}

/** Sums of fractions are not exact. */
const isEqual = (sum: number, wanted: number): boolean =>
  Object.is(sum, wanted) || Math.abs(sum - wanted) <= Math.abs(wanted) * 1e-9;

/** How many series a failure lists at most. */
const mostShown = 8;

function resultsText(results: readonly TestResult[], { screen }: Io): string {
  const lines = results.flatMap(({ name, failures }) => [
    `${failures.length === 0 ? paint('passed', 'green', screen) : paint('FAILED', 'red', screen)}  ${name}`,
    ...failures.map((failure) => `  ${failure}`),
  ]);
  const failed = results.filter(({ failures }) => failures.length > 0).length;
  return `${[...lines, `${results.length - failed} passed, ${failed} failed`].join('\n')}\n`;
}
