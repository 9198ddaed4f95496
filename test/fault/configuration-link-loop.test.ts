import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { validate } from '../../src/agent/config/validate.ts';
import { faultLine } from '../../src/core/errors.ts';
import { newFolder } from '../folder.ts';

test('links of a configuration that lead in a circle are named as that, and not as missing', async () => {
  const cwd = newFolder();
  symlinkSync('other.yaml', join(cwd, 'agent.yaml'));
  symlinkSync('agent.yaml', join(cwd, 'other.yaml'));
  const { faults } = await validate({ file: 'agent.yaml', env: {}, cwd });
  expect(faults.map(faultLine)).toEqual([
    'agent.yaml: a link that leads back to itself; name a file that exists and that the agent’s user can read',
  ]);
});
