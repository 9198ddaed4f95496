import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { schema } from '../../../src/agent/cli/check.ts';
import { init } from '../../../src/agent/cli/init.ts';
import { dropReasons, lineDropReasons } from '../../../src/core/reasons.ts';
import { newFolder } from '../../folder.ts';
import { isInstalled } from '../../installed.ts';
import { fakeIo } from './fake-io.ts';

const projectFile = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const folder = newFolder(afterAll);

async function printed(...args: string[]): Promise<string> {
  const io = fakeIo(folder);
  expect(await schema(args, io)).toBe(0);
  return io.out();
}

/** Validates each document with an independent implementation; undefined if none is installed. */
function faultsOf(schemaText: string, documents: readonly unknown[]): number[] | undefined {
  writeFileSync(join(folder, 'schema.json'), schemaText);
  writeFileSync(join(folder, 'documents.json'), JSON.stringify(documents));
  const script = `
import json
from jsonschema import Draft202012Validator as V
schema = json.load(open('schema.json'))
V.check_schema(schema)
print(json.dumps([len(list(V(schema).iter_errors(d))) for d in json.load(open('documents.json'))]))`;
  const { status, stdout } = spawnSync('python3', ['-c', script], { cwd: folder, encoding: 'utf8' });
  return status === 0 ? (JSON.parse(stdout) as number[]) : undefined;
}

const hasValidator = isInstalled('python3', ['-c', 'import jsonschema']);

describe('the JSON Schema', () => {
  test('has the top-level keys of the contract, stateFsync, recovery and maintenance, and no others', async () => {
    const { $schema, properties, additionalProperties } = JSON.parse(await printed());
    expect($schema).toBe('https://json-schema.org/draft/2020-12/schema');
    expect(additionalProperties).toBe(false);
    expect(Object.keys(properties).join(' ')).toBe(
      'roles serviceConfig scope instance stateDirectory stateFsync metrics services stores ' +
        'clusterGroupMetadata archival domainDefaults domains recovery maintenance backups limits admin log',
    );
  });

  test.runIf(hasValidator)('takes what is right, and refuses what is wrong', async () => {
    const io = fakeIo(folder);
    await init([], io);
    const variable = '$' + '{LEVEL:info}';
    const good = [
      parse(io.out()),
      parse(readFileSync(projectFile('examples/agent.yaml'), 'utf8')),
      { admin: null, metrics: { pushmetrics: null, pullmetrics: { listenAddress: '0.0.0.0:9464' } } },
      { log: { level: variable, stdout: variable }, limits: { series: variable } },
      {
        services: {
          frontend: null,
          history: { scrape: 'http://127.0.0.1:8000/metrics', logs: { paths: ['/a'] } },
        },
      },
    ];
    const wrong = [
      'level-upper-case',
      'unknown-key',
      'unknown-key-below',
      'paths-text',
      'scope-unknown',
      'limit-zero',
      'rule-type-unknown',
      'store-address-missing',
      'listener-key-missing',
    ];
    const bad = wrong.map((name) =>
      parse(readFileSync(projectFile(`test/fixtures/config/bad/${name}.yaml`), 'utf8')),
    );
    const counts = faultsOf(await printed(), [...good, ...bad])!;
    expect(counts.slice(0, good.length)).toEqual(good.map(() => 0));
    expect(counts.slice(good.length).map((count) => count > 0)).toEqual(bad.map(() => true));
  });
});

test('--reasons prints every closed list', async () => {
  const lists = JSON.parse(await printed('--reasons', '--json'));
  expect(lists['svc_log_lines_dropped_total.reason']).toEqual(lineDropReasons);
  for (const component of Object.keys(dropReasons)) {
    expect(Object.keys(lists)).toContain(`svc_agent_dropped_total.reason{component="${component}"}`);
  }
  expect((await printed('--reasons')).trimEnd().split('\n')).toHaveLength(Object.keys(lists).length);
});
