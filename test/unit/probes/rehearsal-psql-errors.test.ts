import { expect, test } from 'vitest';
import { createErrorReader } from '../../../src/probes/rehearsal/psql-errors.ts';

// What psql 15 printed with --echo-errors.
const failed = (error: string, statement: string) => `ERROR:  ${error}\nSTATEMENT:  ${statement}\n`;

test.each([
  ['nothing', '', undefined],
  ['a notice', 'NOTICE:  table "a" does not exist, skipping\n', undefined],
  [
    'a role of the real server',
    failed('role "service" does not exist', 'ALTER TABLE a OWNER TO service;'),
    undefined,
  ],
  [
    'a tablespace of the real server',
    failed('tablespace "fast" does not exist', 'CREATE DATABASE svc WITH TABLESPACE = fast;') +
      'ERROR:  invalid value for parameter "default_tablespace": "fast"\nDETAIL:  Tablespace "fast" does not exist.\n' +
      'STATEMENT:  SET default_tablespace = fast;\n',
    undefined,
  ],
  [
    'a dump with --create and --clean',
    failed('cannot drop the currently open database', 'DROP DATABASE svc;') +
      failed('database "svc" already exists', 'CREATE DATABASE svc;') +
      failed('relation "public.a" does not exist', 'ALTER TABLE ONLY public.a DROP CONSTRAINT a_pkey;'),
    undefined,
  ],
  [
    'rows that have no table',
    failed('relation "a" does not exist', 'COPY public.a (i) FROM stdin;'),
    'relation "a" does not exist',
  ],
  [
    'the first of two errors',
    failed('table "a" does not exist', 'DROP TABLE a;') +
      failed('division by zero', 'SELECT 1/0;') +
      failed('no', 'SELECT no();'),
    'division by zero',
  ],
  ['an error without a statement', 'ERROR:  division by zero\nFATAL:  terminating\n', 'division by zero'],
  ['a lost connection', 'psql: error: \\connect: FATAL:  database "b" does not exist\n', 'FATAL'],
])('%s', (_, text, expected) => {
  for (const size of [1, 7, 4096]) {
    const reader = createErrorReader();
    for (let at = 0; at < text.length; at += size) reader.take(Buffer.from(text.slice(at, at + size)));
    if (expected === undefined) expect(reader.end()).toBeUndefined();
    else expect(reader.end()).toContain(expected);
  }
});
