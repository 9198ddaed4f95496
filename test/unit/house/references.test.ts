import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commands } from '../../../src/agent/cli/arguments.ts';
import { dispatch } from '../../../src/agent/cli/dispatch.ts';
import { configurationSchema } from '../../../src/agent/config/blocks.ts';
import { kindNames } from '../../../src/agent/verdict/kinds.ts';
import { agentMetrics } from '../../../src/core/agent-metrics.ts';
import { catalog } from '../../../src/core/catalog.ts';
import { closedLists } from '../../../src/core/reasons.ts';
import { typeOf } from '../../../src/monitoring/dashboards/queries.ts';
import { alertsOf, packs } from '../../../src/monitoring/packs.ts';
import { fakeIo } from '../cli/fake-io.ts';
import { root } from './imports.ts';

// What a page names in backticks must exist: metrics, alerts, keys of the configuration, paths of the listeners, the words of
// closed lists, and messages.

const pagesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${folder}/${file}`);

const runbooks = pagesIn('runbooks');
const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'deploy/README.md', 'examples/README.md'],
  ...['vocabularies/README.md', 'dashboards/README.md'],
  ...pagesIn('docs'),
  ...runbooks,
].sort();
const textOf = (page: string): string => readFileSync(join(root, page), 'utf8');
/** The texts in backticks, outside of blocks. */
const spansOf = (page: string): readonly string[] => [
  ...new Set(
    [
      ...textOf(page)
        .replace(/^ *```[\s\S]*?^ *```$/gm, '')
        .matchAll(/`([^`\n]+)`/g),
    ].map(([, span]) => span!),
  ),
];

/** A name in the change log that no longer exists, and names in the examples of CONTRIBUTING. */
const others = new Set(['SvcStoreCheckFailing', 'SvcShardsUnbalanced', 'svc_x']);

const metrics = [...catalog, ...agentMetrics].map(({ name }) => name);
const source = pagesOfSource();
function pagesOfSource(): string {
  const folders = ['src', 'vocabularies', 'deploy', 'examples', 'test/fixtures'];
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\.(?:ts|json|yaml|yml)$/.test(entry.name))
        .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8')),
    )
    .join('\n');
}

/**
 * Whether a text is the name of a series as pages write it: with an asterisk for a part, with labels, or with a suffix of a
 * histogram.
 */
function isSeries(written: string): boolean {
  if (written.endsWith('_') || written.includes('*'))
    return metrics.some((name) => name.startsWith(written.split('*')[0]!));
  return typeOf(written) !== undefined || new RegExp(`\\b${written}\\b`).test(source);
}

describe.each(pages)('%s', (page) => {
  const spans = spansOf(page);

  test('names series that exist', () => {
    const names = spans.flatMap((span) =>
      [...span.matchAll(/(?<![\w-])svc_[a-z_]+\*?/g)].map(([name]) => name),
    );
    expect(names.filter((name) => !others.has(name) && !isSeries(name))).toEqual([]);
  });

  test('names alerts that exist', () => {
    const alerts = new Set(packs.flatMap(alertsOf).map(({ name }) => name as string));
    const names = [...textOf(page).matchAll(/\bSvc[A-Z][A-Za-z]+\b/g)].map(([name]) => name);
    expect(names.filter((name) => !alerts.has(name) && !others.has(name))).toEqual([]);
  });

  test('names keys of the configuration that exist', () => {
    const written = spans.filter((span) => /^[a-z][A-Za-z]*(?:\[\])?(?:\.[A-Za-z]+(?:\[\])?)+$/.test(span));
    const paths = written.filter(
      (span) => !fileEnding.test(span) && !(span in closedLists) && isKey(span.split(/[.[]/)[0]!),
    );
    expect(paths.filter((path) => !isPath(path))).toEqual([]);
  });

  test('quotes messages that the agent prints', () => {
    const messages = spans.filter((span) => /^[a-z]+(?: [a-z]+){2,}$/.test(span) && !commandLine.test(span));
    expect(messages.filter((message) => !source.includes(message))).toEqual([]);
  });

  test('names paths that the listeners answer', () => {
    const paths = spans.flatMap(
      (span) =>
        /^(?:(?:GET|POST) )?(?:http:\/\/127\.0\.0\.1:946[45])?(\/[a-z.-]*(?:\/[a-z]+)?)(?=[/? ]|$)/.exec(
          span,
        )?.[1] ?? [],
    );
    const ours = paths.filter(
      (path) => !/^\/(?:etc|var|opt|mnt|tmp|usr|proc|sys|dev|data|v1|bin)(?:\/|$)/.test(path),
    );
    expect(ours.filter((path) => !answered.test(path))).toEqual([]);
  });
});

/** Matches commands of other programs, and of the agent, that consist only of words. */
const commandLine = /^(?:npm|npx|apt|git|node|kubectl|svc-agent) /;
/** Matches files, and names of other programs' settings, which have dots, too. */
const fileEnding =
  /\.(?:ts|js|mjs|md|json|yaml|yml|txt|log|css|svg|html|conf|timer|service|sh|gz|lock|prom|cjs)$/;
const answered =
  /^\/(?:$|page\.js$|page\.css$|icon\.svg$|api\/(?:status|events|history)$|runbooks|metrics$|probes$|probe$|backup|event|health$|ready$|success$|fail$)/;

interface Schema {
  properties?: Readonly<Record<string, Schema>>;
  anyOf?: readonly Schema[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
}

/** The maps that a value may be; lists and maps by name are unfolded. */
function mapsOf(schema: Schema): readonly Schema[] {
  return [
    ...(schema.properties ? [schema] : []),
    ...(schema.anyOf ?? []).flatMap(mapsOf),
    ...(schema.items ? mapsOf(schema.items) : []),
    ...(typeof schema.additionalProperties === 'object' ? mapsOf(schema.additionalProperties) : []),
  ];
}

/** Every map of the configuration, at whatever depth. */
const maps: Schema[] = [];
(function collect(schema: Schema): void {
  for (const map of mapsOf(schema)) {
    if (maps.includes(map)) continue;
    maps.push(map);
    for (const value of Object.values(map.properties!)) collect(value);
  }
})(configurationSchema() as Schema);

const isKey = (key: string): boolean => maps.some(({ properties }) => key in properties!);

/** Whether the keys of a path follow each other somewhere in the configuration. The name of a map may be between two keys. */
function isPath(path: string): boolean {
  const follow = (from: readonly Schema[], keys: readonly string[]): boolean => {
    const [key, ...rest] = keys;
    if (key === undefined) return true;
    const next = from.flatMap(({ properties }) => (properties?.[key] ? [properties[key]] : []));
    if (next.length > 0) return rest.length === 0 || follow(next.flatMap(mapsOf), rest);
    return /^[A-Z]+$/.test(key) && follow(from, rest);
  };
  return follow(maps, path.replaceAll('[]', '').split('.'));
}

/** The output of a command for --help, with the options of every command that reads a configuration. */
const helps = new Map<string, Promise<string>>();
function helpOf(command: string): Promise<string> {
  const read = async () => {
    const io = fakeIo(root);
    await dispatch([command, '--help'], io);
    return io.out().includes('-c FILE') ? `${io.out()} --config` : io.out();
  };
  const help = helps.get(command) ?? read();
  helps.set(command, help);
  return help;
}

test.each(pages)('%s gives commands of the agent only options that they have', async (page) => {
  const calls = [
    ...textOf(page).matchAll(/(?<![\w./-])(?:svc-agent|node dist\/main\.js) ([a-z]+)((?: +[^`\n|;]*)?)/g),
  ].filter(([, name]) => commands.some((command) => command.name === name));
  const wrong: string[] = [];
  for (const [call, name, rest = ''] of calls) {
    const help = await helpOf(name!);
    const [own = ''] = rest.split(/ -- | #| > /);
    const options = own.match(/(?<=\s)--?[a-z][a-z-]*/g) ?? [];
    if (options.some((option) => !new RegExp(`(?<![\\w-])${option}(?![\\w-])`).test(`${help} --help --json`)))
      wrong.push(call);
  }
  expect(wrong).toEqual([]);
});

/** Words with an underscore in a runbook: reasons, results, kinds of problems, labels. */
test.each(runbooks)('%s names words of closed lists and labels that exist', (page) => {
  const labels = new Set([...catalog, ...agentMetrics].flatMap(({ tags }) => tags));
  const listed = new Set<string>([...Object.values(closedLists).flat(), ...kindNames]);
  const words = spansOf(page).filter((span) => /^[a-z]+(?:_[a-z]+)+$/.test(span) && !span.startsWith('svc_'));
  expect(words.filter((word) => !listed.has(word) && !labels.has(word))).toEqual([]);
});
