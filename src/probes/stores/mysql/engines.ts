import type { StoreVerdict } from '../store.ts';
import { type Ask, answerOf, listed, literal, numberOf } from './answer.ts';

/** Those that a dump in one transaction catches at one moment, and that survive a crash. */
const transactional = ['innodb', 'rocksdb', 'ndbcluster'];

/** Each of these on a database, or on all, shows every table's name and engine; those of single tables do not. */
const showing = [
  'SELECT',
  'INSERT',
  'UPDATE',
  'DELETE',
  'CREATE',
  'DROP',
  'REFERENCES',
  'INDEX',
  'ALTER',
  'CREATE VIEW',
  'SHOW VIEW',
  'TRIGGER',
];

/** Names the columns that are wanted, for any other makes the server open every table. */
const enginesQuery = (database: string) =>
  `SELECT ENGINE AS engine, COUNT(*) AS tables FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = ${literal(database)} AND TABLE_TYPE = 'BASE TABLE' GROUP BY ENGINE`;

/** The database of a right may be written as a pattern. */
const rightsQuery = (database: string) =>
  `SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES
    WHERE REPLACE(GRANTEE, '''', '') = CURRENT_USER() AND PRIVILEGE_TYPE IN (${listed(showing)})
  UNION SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES
    WHERE REPLACE(GRANTEE, '''', '') = CURRENT_USER() AND PRIVILEGE_TYPE IN (${listed(showing)})
    AND ${literal(database)} LIKE TABLE_SCHEMA`;

/**
 * Whether every table is of an engine with transactions. A user sees only the tables that it has a right to: of
 * fewer than all nothing good can be said.
 */
export async function enginesOf(ask: Ask, database: string): Promise<StoreVerdict> {
  const engines = await answerOf(ask, enginesQuery(database));
  if (engines.rows === undefined)
    return { check: 'storage_engine', holds: 'unknown', found: engines.unknown };
  const found = engines.rows
    .map(({ engine, tables }) => `${tables} of ${engine ?? 'no known engine'}`)
    .join(', ');
  const isGood = engines.rows.every(({ engine }) => transactional.includes((engine ?? '').toLowerCase()));
  if (!isGood) return { check: 'storage_engine', holds: false, found: `tables: ${found}` };
  const rights = await answerOf(ask, rightsQuery(database));
  const seesAll = (rights.rows?.length ?? 0) > 0;
  const count = engines.rows.reduce((sum, { tables }) => sum + (numberOf(tables) ?? 0), 0);
  if (seesAll && count > 0) return { check: 'storage_engine', holds: true, found: `tables: ${found}` };
  const why = seesAll ? 'there is no table' : 'the user does not see every table';
  return { check: 'storage_engine', holds: 'unknown', found: why };
}
