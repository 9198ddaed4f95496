import { expect, test } from 'vitest';
import { grants, quotedText } from '../../../../../src/probes/stores/widecolumn/grants.ts';

test('the least that a look needs, keyspace by keyspace', () => {
  expect(grants('svc_agent', ['svc', 'Vis"ibility'])).toEqual([
    `CREATE ROLE IF NOT EXISTS "svc_agent" WITH LOGIN = true AND PASSWORD = '<password>';`,
    'GRANT SELECT ON TABLE "svc".schema_version TO "svc_agent";',
    'GRANT SELECT ON TABLE "Vis""ibility".schema_version TO "svc_agent";',
    'GRANT SELECT ON TABLE system_views.settings TO "svc_agent";',
    'GRANT SELECT ON TABLE system_views.clients TO "svc_agent";',
  ]);
});

test('a text keeps its quotes', () => {
  expect(quotedText("it's")).toBe("'it''s'");
});
