import { expect, test } from 'vitest';
import { commonPrefix } from '../../../src/agent/cli/live-pages.ts';
import { catalog } from '../../../src/core/catalog.ts';

const names = catalog.map(({ name }) => name);

test.each([
  ['a prefix before the catalog’s names', names.map((name) => `acme_${name}`), 'acme'],
  ['one of several words', names.map((name) => `acme_prod_${name}`), 'acme_prod'],
  ['one before bare names', ['restarts', 'gomaxprocs', 'memory_heap'].map((name) => `x_${name}`), 'x'],
  ['none', ['go_threads', 'process_start_time_seconds', 'http_requests'], undefined],
  ['too few', ['a_restarts', 'a_gomaxprocs'], undefined],
])('%s', (_, unmapped, prefix) => expect(commonPrefix(unmapped)).toBe(prefix));
