import fc from 'fast-check';
import { expect, test } from 'vitest';
import { validate } from '../../../src/agent/config/validate.ts';
import { faultLine } from '../../../src/core/errors.ts';
import { runs } from '../../size.ts';
import { agentFile } from './agent-file.ts';

/** Either a configuration or faults, each on one line; fails if there are both, neither, or an exception. */
async function outcomeOf(content: string | Uint8Array, serviceFile?: string) {
  const loaded = await validate({
    file: agentFile(content),
    serviceConfig: serviceFile === undefined ? [] : [agentFile(serviceFile)],
    env: {},
    cwd: '/',
  });
  expect(loaded.config === undefined).toBe(loaded.faults.length > 0);
  for (const fault of [...loaded.faults, ...loaded.findings]) expect(faultLine(fault)).not.toContain('\n');
  expect(structuredClone(loaded)).toEqual(loaded);
  return loaded;
}

const words = (
  'services metrics frontend logs paths rules pullmetrics stores admin roles log __proto__ constructor password ' +
  'scrape tls persistence clusterMetadata archival'
).split(' ');
const marks = [
  ...[': ', '\n  ', '\n', '- ', '[', ']', '{', '}', ', ', '&a ', '*a', '<<: ', '"', '#', '~', '1'],
  ...['$' + '{A:b}', '!!set ', '|', '\t', '%', '\u0000', '\ud800'],
];
const yamlish = fc
  .array(fc.constantFrom(...words, ...marks), { maxLength: 40 })
  .map((parts) => parts.join(''));

/** Maps of known words with arbitrary content. */
const nested = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(0, -1, 1.5, true, null, '', 'a', '10s', '127.0.0.1:9464'),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('map'),
  ),
  map: fc.dictionary(fc.constantFrom(...words.filter((word) => word !== '__proto__')), tie('value'), {
    maxKeys: 5,
  }),
})).map;

test('any bytes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => void (await outcomeOf(bytes))),
    { numRuns: runs(300) },
  );
});

test('any text that looks like YAML', async () => {
  await fc.assert(
    fc.asyncProperty(yamlish, async (text) => void (await outcomeOf(text))),
    { numRuns: runs(300) },
  );
});

test('any map of known keys, as either kind of file', async () => {
  await fc.assert(
    fc.asyncProperty(
      nested,
      nested,
      fc.constantFrom('host', 'cluster', 'all'),
      async (agent, service, scope) => {
        await outcomeOf(
          JSON.stringify({ ...(agent as object), scope, roles: ['frontend'] }),
          JSON.stringify(service),
        );
      },
    ),
    { numRuns: runs(300) },
  );
});

test('a service file alone never makes agent.yaml wrong', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        yamlish,
        nested.map((map) => JSON.stringify(map)),
      ),
      async (service) => {
        expect((await outcomeOf('scope: all\nservices: {frontend: }\n', service)).faults).toEqual([]);
      },
    ),
    { numRuns: runs(300) },
  );
});
