import { describe, expect, test } from 'vitest';
import { grants } from '../../../../../src/probes/stores/mysql/grants.ts';

describe('the printed grants', () => {
  test('are these, and no more', () => {
    expect(grants('svc_agent', ['svc', 'svc_visibility'])).toEqual([
      "CREATE USER 'svc_agent'@'%' IDENTIFIED BY '<password>' WITH MAX_USER_CONNECTIONS 3;",
      '-- Whether the server copies another, and where its binary log stands.',
      "GRANT REPLICATION CLIENT ON *.* TO 'svc_agent'@'%';",
      "-- MariaDB also: GRANT REPLICA MONITOR ON *.* TO 'svc_agent'@'%';",
      '',
      "GRANT SELECT ON `svc`.`schema_version` TO 'svc_agent'@'%';",
      '-- Names and engines of the tables, nothing that is in them.',
      "GRANT SHOW VIEW ON `svc`.* TO 'svc_agent'@'%';",
      '',
      "GRANT SELECT ON `svc_visibility`.`schema_version` TO 'svc_agent'@'%';",
      '-- Names and engines of the tables, nothing that is in them.',
      "GRANT SHOW VIEW ON `svc\\_visibility`.* TO 'svc_agent'@'%';",
    ]);
  });

  test('a database that holds both schemas is named once', () => {
    const statements = grants('a', ['svc', 'svc']);
    expect(statements.filter((line) => line.includes('schema_version'))).toHaveLength(1);
  });

  test('names stay names', () => {
    const text = grants("o'brien", ['a`b']).join('\n');
    expect(text).toContain("TO 'o''brien'@'%'");
    expect(text).toContain('ON `a``b`.`schema_version`');
  });
});
