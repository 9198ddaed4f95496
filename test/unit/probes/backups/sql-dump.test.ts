import { expect, test } from 'vitest';
import { readSqlDump } from '../../../../src/probes/backups/sql-dump.ts';

/** A dump of one table, as mariadb-dump 10.11 writes it. */
const dump = (over: { engine?: string; position?: string; data?: string; gtids?: string } = {}) => {
  const own = "CHANGE MASTER TO MASTER_LOG_FILE='bin.000002', MASTER_LOG_POS=322;";
  const { engine = 'InnoDB', position = `-- ${own}`, data = '(1)', gtids = '' } = over;
  return `-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: svc
-- ------------------------------------------------------

${position}

--
-- Table structure for table \`executions\`
--

CREATE TABLE \`executions\` (
  \`i\` int(11) NOT NULL,
  PRIMARY KEY (\`i\`)
) ENGINE=${engine} DEFAULT CHARSET=latin1;

--
-- Dumping data for table \`executions\`
--

INSERT INTO \`executions\` VALUES
${data};
${gtids}
-- Dump completed on 2026-11-24 12:05:19
`;
};

const read = async (text: string, size = text.length) => {
  const bytes = Buffer.from(text);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const { fault, content } = await readSqlDump(pieces());
  expect(fault).toBeUndefined();
  return content;
};

test('a log goes on from the place of a dump, by its file, its position and its transactions', async () => {
  const gtids = "-- SET GLOBAL gtid_slave_pos='2-7-5,0-1-44';";
  // The result is the same however the bytes arrive.
  for (const size of [7, 64, 4096])
    expect((await read(dump({ gtids }), size)).binlog).toEqual({
      ...{ file: 'bin.000002', position: 322, gtids: '0-1-44,2-7-5' },
    });
  expect((await read(dump())).binlog).toEqual({ file: 'bin.000002', position: 322 });
});

test('of several dumps in one file each has to end', async () => {
  const faultIn = async (text: string) => {
    async function* whole() {
      yield Buffer.from(text);
    }
    return (await readSqlDump(whole())).fault;
  };
  const cut = dump().slice(0, dump().indexOf('INSERT INTO'));
  expect(await faultIn(dump() + dump())).toBeUndefined();
  for (const text of [dump() + cut, cut + dump(), dump() + cut + dump(), cut])
    expect(await faultIn(text)).toMatch(/the dump is not complete/);
});

test.each(['Aria', 'MyISAM', 'MEMORY'])(
  'a table of %s has rows from after the position of the dump',
  async (engine) => {
    expect((await read(dump({ engine }))).withoutLog).toContain(`svc.executions has the engine ${engine}`);
    expect((await read(dump({ engine: 'InnoDB' }))).withoutLog).toBeUndefined();
    // A value has no line break of its own.
    const data = `(1,'a\\n) ENGINE=${engine}')`;
    expect((await read(dump({ data }))).withoutLog).toBeUndefined();
  },
);

test.each([
  'Position to start replication or point-in-time recovery from (the master of this slave)',
  'The following is the SQL position of the replication taken from SHOW SLAVE STATUS at the time of backup.',
])('a dump of a replica at the position of its source has no time of its own: %s', async (comment) => {
  const position = `--
-- ${comment}
--

-- CHANGE MASTER TO MASTER_LOG_FILE='bin.000009', MASTER_LOG_POS=4;`;
  const content = await read(dump({ position }));
  expect(content).toMatchObject({ binlog: { file: 'bin.000009', position: 4 } });
  expect(content.endWall).toBeUndefined();
  expect(content.unknown).toContain('--dump-slave');
  expect((await read(dump())).endWall).toBeDefined();
});
