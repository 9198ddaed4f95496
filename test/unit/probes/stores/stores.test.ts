import { describe, expect, test } from 'vitest';
import { storeChecks } from '../../../../src/core/check-severity.ts';
import { storeFailureReasons } from '../../../../src/core/reasons.ts';
import { adviceOn } from '../../../../src/probes/stores/store-checks.ts';
import { storeKinds } from '../../../../src/probes/stores/store-options.ts';
import { planStores } from '../../../../src/probes/stores/stores.ts';
import { storeOn } from '../../../store-probe.ts';

describe('the plan', () => {
  const both = storeOn(5432, {
    databases: { persistence: 'orders', visibility: 'orders_visibility' },
    user: 'me',
    password: 'hunter2',
  });

  test('one row for each database, one connection for the store', () => {
    const rows = planStores({
      stores: [both, storeOn(3306, { name: 'other', kind: 'mysql', databases: {} })],
    });
    expect(rows.map(({ name, target, lane, service }) => [name, target, lane, service])).toEqual([
      ['store/main/persistence', 'postgres://127.0.0.1:5432/orders', 'store/main', ''],
      ['store/main/visibility', 'postgres://127.0.0.1:5432/orders_visibility', 'store/main', ''],
      ['store/other', 'mysql://127.0.0.1:3306', 'store/other', ''],
    ]);
  });

  test('what a row shows', () => {
    const [persistence] = planStores({ stores: [both] });
    const labels = { store: 'main', kind: 'postgres', database: 'persistence' };
    expect(persistence!.shows).toEqual({
      up: { name: 'svc_store_up', labels },
      duration: { name: 'svc_store_probe_duration_seconds', labels },
      failures: { name: 'svc_store_failures_total', labels },
    });
    expect(persistence!.reasons).toEqual(storeFailureReasons);
    expect(persistence!.schedule).toEqual({ intervalMs: 30_000, timeoutMs: 20_000 });
  });

  test('the key tells every change, and no password', () => {
    const keyOf = (over = {}) => planStores({ stores: [{ ...both, ...over }] }).map(({ key }) => key);
    expect(keyOf()).toEqual(keyOf());
    const keys = [
      ...keyOf(),
      ...[{ password: 'other' }, { timeoutMs: 1 }, { schema: { query: 'SELECT 1' } }, { tls: {} }].flatMap(
        keyOf,
      ),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(JSON.stringify(planStores({ stores: [both] }))).not.toContain('hunter2');
  });
});

test.each(storeKinds)('every check of %s has its why, what and restart', (kind) => {
  for (const check of storeChecks) {
    const { why, set, restart } = adviceOn(check, kind);
    expect(why).toMatch(/^[A-Z].{20,}\.$/);
    expect(set).toMatch(/^.{10,}\.$/);
    expect(restart).toMatch(/restart/);
  }
});
