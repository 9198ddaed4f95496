import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../../unit/house/imports.ts';
import { type Instruction, instructionsOf, stagesOf } from './dockerfile.ts';

interface Linter {
  validate(text: string): { message: string; instructionLine: number; severity: number }[];
}
const specifier: string = 'dockerfile-utils';
const linter = (await import(specifier).catch((error: NodeJS.ErrnoException) => {
  if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined;
  throw error;
})) as Linter | undefined;

const text = readFileSync(join(root, 'Dockerfile'), 'utf8');
const stages = stagesOf(instructionsOf(text));
const targets = ['agent', 'agent-tools'];

const only = (stage: readonly Instruction[], keyword: string): string => {
  const found = stage.filter((instruction) => instruction.keyword === keyword);
  expect(found, keyword).toHaveLength(1);
  return found[0]!.rest;
};
const command = (rest: string): string[] => JSON.parse(rest.slice(rest.indexOf('[')));

describe('the Dockerfile', () => {
  test.skipIf(!linter)('dockerfile-utils has nothing to say, and would', () => {
    expect(linter!.validate('FROM a\nCPOY a b\n').map(({ message }) => message)).toEqual([
      'Unknown instruction: CPOY',
    ]);
    expect(linter!.validate(text)).toEqual([]);
  });

  test('has the two targets', () => {
    expect([...stages.keys()]).toEqual(['build', ...targets]);
  });

  test.each(targets)(
    '%s: a numeric user, programs without a shell, a health check by the agent itself',
    (name) => {
      const stage = stages.get(name)!;
      expect(only(stage, 'USER')).toBe('65532:65532');
      const entry = command(only(stage, 'ENTRYPOINT'));
      expect(entry.at(-1)).toBe('/app/dist/main.js');
      expect(command(only(stage, 'CMD'))[0]).toBe('run');
      const [node, program, healthcheck] = command(only(stage, 'HEALTHCHECK').replace(/^.*CMD /, ''));
      expect(entry).toContain(node);
      expect([program, healthcheck]).toEqual(['/app/dist/main.js', 'healthcheck']);
      expect(command(only(stage, 'VOLUME'))).toEqual(['/var/lib/svc-agent']);
    },
  );

  test.each(targets)('%s: says the version of the package', (name) => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    const given = stages.get(name)!.filter(({ rest }) => rest.startsWith('VERSION='));
    expect(given.map(({ rest }) => rest)).toEqual([`VERSION=${version}`]);
  });

  test('agent: nothing is run in it, since it has no shell', () => {
    expect(stages.get('agent')!.filter(({ keyword }) => keyword === 'RUN')).toEqual([]);
  });

  test('what is copied from the project is there, and goes to the builder', () => {
    const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
    for (const { keyword, rest } of [...stages.values()].flat()) {
      if (keyword !== 'COPY' || rest.includes('--from=')) continue;
      for (const source of rest.split(' ').slice(0, -1)) {
        expect(existsSync(join(root, source)), source).toBe(true);
        expect(ignored, source).toContain(`!${source}`);
      }
    }
  });
});
