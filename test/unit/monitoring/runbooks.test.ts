import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { dispatch } from '../../../src/agent/cli/dispatch.ts';
import { alertsOf, packs } from '../../../src/monitoring/packs.ts';
import { lintRules } from '../../../tools/lint/rules.ts';
import { fakeIo } from '../cli/fake-io.ts';
import { root } from '../house/imports.ts';
import { queriesOf, runbookFiles } from './runbooks.ts';

const folder = join(root, 'runbooks');
const alerts = [...new Set(packs.flatMap(alertsOf).map(({ name }) => name))].sort();
const recorded = packs.flatMap(({ groups }) =>
  groups.flatMap(({ records = [] }) => records.map((of) => of.record)),
);
const text = (file: string) => readFileSync(join(folder, file), 'utf8');
const commands = runbookFiles.flatMap((file) =>
  [...text(file).matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block]) =>
    block!.split('\n').map((line) => line.trim()),
  ),
);

/** The commands of the agent that runbooks and alerts tell an operator to use, as words. */
function ownCommands(): (readonly [command: string])[] {
  const said = [...commands, ...packs.flatMap(alertsOf).map(({ firstSteps }) => firstSteps)];
  const inText = runbookFiles.flatMap((file) => [...text(file).matchAll(/`(svc-agent [a-z][^`\n]*)`/g)]);
  const found = [...said, ...inText.map(([, command]) => command!)].flatMap((of) => [
    ...of.matchAll(/\bsvc-agent [a-z]+(?: (?:--?[a-z][a-z-]*|<[a-z ]+>|[\w.-]+=\S+|[a-z/-]+(?=[ .;:]|$)))*/g),
  ]);
  return [...new Set(found.map(([command]) => command!))].sort().map((command) => [command]);
}

describe('runbooks', () => {
  test('there is one for each alert, and no other', () => {
    const present = readdirSync(folder).filter((name) => name.endsWith('.md'));
    expect(present.sort()).toEqual(alerts.map((name) => `${name}.md`));
  });

  test('there is one for each recovery procedure', () => {
    expect(readdirSync(join(folder, 'recovery')).sort()).toEqual([
      'complete-cluster-loss.md',
      'database-corruption.md',
      'datacenter-failure.md',
      'failback.md',
    ]);
  });

  test.each(alerts)('%s has its parts, and a query in its diagnosis', (name) => {
    const parts = text(`${name}.md`).split(/^## /m);
    expect(parts[0]).toBe(`# ${name}\n\n`);
    expect(parts.slice(1).map((part) => part.split('\n')[0])).toEqual([
      'Meaning',
      'Impact',
      'Diagnosis',
      'Mitigation',
      'Escalation',
    ]);
    for (const part of parts.slice(1)) expect(part.split('\n').slice(1).join('').trim()).not.toBe('');
    expect(parts[3]).toContain('```promql');
  });

  test.each(alerts)('%s says what an answer to its first question means', (name) => {
    const [, diagnosis = ''] = text(`${name}.md`).split(/^## (?:Diagnosis|Mitigation)\n/m);
    const [, firstStep = ''] = diagnosis.split(/^\d+\. /m);
    const hasCommand = /^ {3}```(?:promql|sh)$/m.test(firstStep);
    const afterwards = diagnosis.replace(/^ {3}```[\s\S]*?^ {3}```$/gm, '').match(/^ {3}\S/gm) ?? [];
    expect([hasCommand, afterwards.length > 0]).toEqual([true, true]);
  });

  /** Alerts during which series or counters that others read, or their own condition, end or stand still. */
  test.each([
    ['SvcAgentDown'],
    ['SvcArchivalStalled'],
    ['SvcInstanceDown'],
    ['SvcLogFault'],
    ['SvcLogSilent'],
    ['SvcProbeStale'],
    ['SvcRetentionBeforeArchive'],
    ['SvcServiceDown'],
    ['SvcTargetsVanished'],
  ])('%s says that an alert which resolves meanwhile is not a recovery', (name) => {
    const [, beforeDiagnosis = ''] = text(`${name}.md`).match(/^([\s\S]*?)^## Diagnosis$/m) ?? [];
    expect(beforeDiagnosis).toContain('is not a recovery');
  });

  test.each(runbookFiles)('%s asks only for what is there', (file) => {
    const rules = queriesOf(file).map((expr, index) => ({ record: `cluster:query:${index}`, expr }));
    const wanted = new Set(['known-metric', 'known-label', 'gauge', 'quantile']);
    const findings = lintRules('recording', { groups: [{ name: 'queries', rules }] }, recorded);
    expect(findings.filter(({ lint }) => wanted.has(lint))).toEqual([]);
  });

  test.each(runbookFiles)('%s links to files that are there', (file) => {
    const links = [...text(file).matchAll(/\]\(([^)#]+)\)/g)].map(([, link]) => link!);
    expect(links.filter((link) => !existsSync(join(folder, dirname(file), link)))).toEqual([]);
  });

  /** The spec's table Command-line operations: each row, and every option of it. */
  test.each([
    ['domain register', '--global_domain', '--active_cluster', '--clusters', '--retention', '--description'],
    ['domain describe', '--domain'],
    ['domain update', '--active_cluster'],
    ['workflow show', '--workflow_id', '--run_id', '--domain'],
    ['workflow list', '--domain', '--archived'],
    ['workflow describe', '--workflow_id', '--domain'],
    ['admin domain describe', '--domain', '--sync'],
    ['admin workflow show', '--workflow_id', '--run_id'],
    ['admin workflow list-history-branches'],
    ['admin workflow refresh', '--workflow_id'],
    ['admin workflow delete', '--workflow_id', '--run_id'],
    ['admin db scan', '--db-type'],
    ['<schema tool> version', '--ep', '--keyspace'],
  ])('%s is used, with each of its options', (operation, ...options) => {
    const own = operation.startsWith('<') ? operation : `<cli> (?:--domain <domain> )?${operation}(?![\\w-])`;
    const used = commands.filter((command) => new RegExp(`^${own}`).test(command));
    expect(used).not.toEqual([]);
    for (const option of options)
      expect(
        used.some((command) => command.includes(option)),
        option,
      ).toBe(true);
  });

  test('the service’s own tools are asked only for what the spec has', () => {
    const known =
      /^(?:<cli> (?:--domain <domain> )?(?:domain (?:register|describe|update)|workflow (?:show|list|describe)|admin (?:domain describe|workflow (?:show|list-history-branches|refresh|delete)|db scan))|<schema tool> version)(?![\w-])/;
    expect(commands.filter((command) => command.startsWith('<') && !known.test(command))).toEqual([]);
  });

  test.each(ownCommands())('%s is a command of the agent, with these options', async (command) => {
    const io = fakeIo(root);
    const [, name = '', ...words] = command.split(' ');
    expect(await dispatch([name, '--help'], io)).toBe(0);
    const options = words.filter((word) => word.startsWith('-'));
    expect(options.filter((option) => !new RegExp(`(?<![\\w-])${option}(?![\\w-])`).test(io.out()))).toEqual(
      [],
    );
  });
});
