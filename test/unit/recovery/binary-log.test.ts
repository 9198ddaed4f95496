import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import {
  logFiles,
  printLog,
  readDumpHeader,
  readLog,
  timeOfPosition,
} from '../../../src/agent/recovery/binary-log.ts';
import { writeProgram } from '../../command.ts';
import { newFolder } from '../../folder.ts';

const mariadb = `/*M!999999\\- enable the sandbox mode */ 
-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: svc
-- ------------------------------------------------------
-- Server version	10.11.6-MariaDB-0+deb12u1-log
`;
const mysql = '-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)\n-- Server version\t8.0.36\n';
const postgres =
  '--\n-- PostgreSQL database dump\n--\n\n-- Dumped from database version 15.18 (Debian 15.18-0)\n';

test.each([
  [
    'MariaDB',
    `${mariadb}-- CHANGE MASTER TO MASTER_LOG_FILE='bin.000004', MASTER_LOG_POS=330;\n`,
    '10.11.6-MariaDB-0+deb12u1-log',
    true,
    { file: 'bin.000004', position: 330 },
  ],
  [
    'MariaDB of an older version',
    `-- MariaDB dump 10.19\n-- Server version\t10.3\n`,
    '10.3',
    true,
    undefined,
  ],
  [
    'MySQL',
    `${mysql}CHANGE MASTER TO MASTER_LOG_FILE='b.1', MASTER_LOG_POS=4;\n`,
    '8.0.36',
    false,
    { file: 'b.1', position: 4 },
  ],
  [
    'MySQL 8.2',
    `${mysql}-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='b.1', SOURCE_LOG_POS=157;\n`,
    '8.0.36',
    false,
    { file: 'b.1', position: 157 },
  ],
  [
    'MySQL without its place',
    `${mysql}INSERT INTO t VALUES ('CHANGE MASTER TO MASTER_LOG_FILE');\n`,
    '8.0.36',
    false,
    undefined,
  ],
  ['PostgreSQL', postgres, '15.18', false, undefined],
  ['nothing', '', undefined, false, undefined],
])('the header of a dump of %s', async (_, text, serverVersion, isMariadb, log) => {
  const folder = newFolder();
  const [plain, packed] = [join(folder, 'a.sql'), join(folder, 'a.sql.gz')];
  writeFileSync(plain, text);
  // The file is much longer than what is read, which ends in the middle of the compressed data.
  writeFileSync(
    packed,
    gzipSync(`${text}${Array.from({ length: 200_000 }, (_, at) => `${at * 7919}`).join(',')}`),
  );
  const header = { serverVersion, isMariadb, ...(log && { log }) };
  expect(await readDumpHeader(plain)).toEqual(header);
  expect(await readDumpHeader(packed)).toEqual(header);
});

test('a dump that cannot be read is an error', async () => {
  const folder = newFolder();
  writeFileSync(join(folder, 'a.sql.gz'), 'not compressed');
  await expect(readDumpHeader(join(folder, 'a.sql.gz'))).rejects.toThrow('incorrect header check');
  await expect(readDumpHeader(join(folder, 'none.sql'))).rejects.toThrow('ENOENT');
  await expect(readDumpHeader(join(folder, 'none.sql.gz'))).rejects.toThrow('ENOENT');
});

test.each([
  ['bin.000009', undefined, ['bin.000009', 'bin.000010', 'bin.000011']],
  ['bin.000009', 'bin.000010', ['bin.000009', 'bin.000010']],
  ['bin.000013', undefined, ['bin.000013']],
  ['bin.000012', undefined, []],
  ['bin.13', undefined, []],
  ['bin', undefined, []],
])('the log from %s to %s', (file, last, names) => {
  const folder = newFolder();
  for (const name of ['bin.000009', 'bin.000010', 'bin.000011', 'bin.000013', 'bin.index'])
    writeFileSync(join(folder, name), '');
  expect(logFiles(folder, { file, position: 4 }, last)).toEqual(names.map((name) => join(folder, name)));
  expect(logFiles(join(folder, 'none'), { file, position: 4 }, last)).toEqual([]);
});

/** A program that prints a log, and the words that run it. */
function printing(text: string) {
  const folder = newFolder();
  writeFileSync(join(folder, 'log'), text);
  writeProgram(
    folder,
    'mysqlbinlog',
    `for word; do case $word in --database=*) exit 9;; esac; done; cat ${join(folder, 'log')}`,
  );
  return { PATH: `${folder}:${process.env.PATH}` };
}

const position = { file: 'bin.000004', position: 77 };
const at = (time: string) => `#261123 ${time} server id 1  end_log_pos 400 CRC32 0x1 \tQuery\n`;
const [twelve, one] = [Date.UTC(2026, 10, 23, 12, 0, 1), Date.UTC(2026, 10, 23, 13, 59, 59)];

test.each([
  ['nothing', '', {}],
  ['times alone', `${at('12:00:01')}BEGIN\n/*!*/;\n${at('13:59:59')}`, { lastMs: one }],
  ['an hour of one digit', at(' 9:00:00'), { lastMs: Date.UTC(2026, 10, 23, 9) }],
  [
    'statements of the selected database',
    `${at('12:00:01')}use \`svc\`/*!*/;\nINSERT INTO svc.t VALUES (1)\n`,
    { lastMs: twelve },
  ],
  [
    'a statement of another default database',
    `use \`other\`/*!*/;\nINSERT INTO svc.t VALUES (1)\ninsert into svc.u values (2)\n`,
    { leftOut: 'INSERT INTO svc.t VALUES (1)' },
  ],
  ['a statement without any', 'update `svc`.t set a = 1\n', { leftOut: 'update `svc`.t set a = 1' }],
  [
    'a name that only contains it',
    'INSERT INTO mysvc.t VALUES (1)\nINSERT INTO svc2.t VALUES (1)\nINSERT INTO $svc.t\n',
    {},
  ],
  ['a statement that changes nothing', 'SELECT * FROM svc.t\nCREATED svc\n', {}],
  [
    'a default database with a backtick',
    'use `a``svc`/*!*/;\nDELETE FROM svc.t\nuse `svc`/*!*/;\nDELETE FROM svc.u\n',
    { leftOut: 'DELETE FROM svc.t' },
  ],
  [
    'a long statement',
    `DELETE FROM svc.t WHERE ${'x'.repeat(200)}\n`,
    { leftOut: `DELETE FROM svc.t WHERE ${'x'.repeat(200)}`.slice(0, 120) },
  ],
  [
    'a database that is dropped',
    `${at('12:00:01')}drop database svc\n${at('13:59:59')}`,
    { isGone: true, droppedMs: twelve, lastMs: one },
  ],
  [
    'a database that is dropped and created again',
    `${at('12:00:01')}DROP SCHEMA IF EXISTS svc\n${at('13:59:59')}CREATE DATABASE svc\n`,
    { isGone: false, droppedMs: twelve, lastMs: one },
  ],
  ['a database that is altered', 'ALTER DATABASE svc CHARACTER SET utf8\n', {}],
])('a log with %s', async (_, text, content) => {
  const command = printLog(['/log/bin.000004'], position, 'svc', { isMariadb: true });
  expect(await readLog(command, 'svc', printing(text))).toEqual(content);
});

test('the time of a position is that of the last event before it', async () => {
  const env = printing(`${at('12:00:01')}BEGIN\n${at('13:59:59')}COMMIT\n`);
  expect(await timeOfPosition('/log/bin.000004', position, env)).toBe(one);
  expect(await timeOfPosition('/log/bin.000004', position, printing('BEGIN\n'))).toBeUndefined();
});
