import { expect, test } from 'vitest';
import type { StatusFacts } from '../../../../src/agent/admin/report.ts';
import { createChangeFinder } from '../../../../src/agent/verdict/changes.ts';

const facts = (changedAt?: string): StatusFacts =>
  ({
    now: '2026-01-01T00:10:00.000Z',
    probes: [],
    versions: {},
    restarts: {},
    domains: [],
    certificates: [],
    config: {
      files: [],
      lastReloadSuccessful: true,
      dynamic: { file: '/etc/svc/dynamic.yaml', ...(changedAt && { changedAt }) },
    },
  }) as unknown as StatusFacts;

test('a change of the service’s dynamic configuration is dated by its file, once, also after it was away', () => {
  const find = createChangeFinder();
  expect(find(facts('2026-01-01T00:00:00.000Z'))).toEqual([]);
  expect(find(facts('2026-01-01T00:00:00.000Z'))).toEqual([]);
  expect(find(facts())).toEqual([]);
  const change = {
    at: '2026-01-01T00:09:00.000Z',
    kind: 'configuration',
    what: 'the service’s dynamic configuration changed: /etc/svc/dynamic.yaml',
  };
  expect(find(facts('2026-01-01T00:09:00.000Z'))).toEqual([change]);
  expect(find(facts('2026-01-01T00:09:00.000Z'))).toEqual([]);
});
