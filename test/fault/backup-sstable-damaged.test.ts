import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { cutIndexOf } from '../../src/probes/backups/formats/sstable-index.ts';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { hasCassandra, startCassandra } from '../cassandra.ts';
import { newFolder } from '../folder.ts';

// Only the data file of an SSTable has a digest. Without its statistics or the description of its chunks nothing of it can be read,
// and a filter that is cut off hides its rows.
/** Reads files in pieces of a length. */
const reading = (length: number) => ({
  partitions: undefined,
  async *read(path: string) {
    const bytes = readFileSync(path);
    for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
  },
});

test.skipIf(!hasCassandra).each(['big', 'bti'])(
  'a damaged file beside the data of an SSTable of the format %s is found',
  async (format) => {
    const node = await startCassandra({ settings: `\nsstable:\n  selected_format: ${format}\n` });
    onTestFinished(() => node.remove());
    await node.run(
      `CREATE KEYSPACE svc WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
      `CREATE TABLE svc.executions (i int PRIMARY KEY, state text) WITH compression =
      {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4, 'min_compress_ratio': 1.2}`,
      `CREATE TABLE svc.domains (i int PRIMARY KEY, state text) WITH compression = {'class': 'ZstdCompressor'}`,
      'CREATE TABLE svc.wide (one int, i int, state text, PRIMARY KEY (one, i))',
      `CREATE TABLE svc.plain (i int PRIMARY KEY, state text) WITH compression = {'enabled': false}`,
      ...Array.from({ length: 40 }, (_, i) => {
        // Some chunks cannot be compressed.
        const state =
          i % 2 === 0 ? 'x'.repeat(900) : Buffer.from(`${Math.sin(i)}`.repeat(30)).toString('base64');
        return `BEGIN BATCH ${['executions', 'domains', 'plain']
          .map((table) => `INSERT INTO svc.${table} (i, state) VALUES (${i}, '${state}')`)
          .join(
            '; ',
          )}; INSERT INTO svc.wide (one, i, state) VALUES (${i % 3}, ${i}, '${state}'); APPLY BATCH`;
      }),
    );
    const [program, ...rest] = node.nodetool('snapshot', '--tag', 'snap', 'svc');
    execFileSync(program!, rest, { stdio: 'pipe' });
    const keyspace = join(newFolder(), 'svc');
    cpSync(join(node.data, 'svc'), keyspace, { recursive: true });
    const verified = async () => {
      const request = { path: keyspace, snapshot: 'snap', level: 'full', bytesPerSecond: 1e12 } as const;
      return (await verifyBackup(request)).result;
    };
    expect(await verified()).toBe('ok');
    for (const table of readdirSync(keyspace)) {
      const directory = join(keyspace, table, 'snapshots', 'snap');
      const files = readdirSync(directory);
      expect(files.some((name) => name.endsWith('-CompressionInfo.db'))).toBe(!table.startsWith('plain'));
      for (const name of files.filter((each) =>
        /-(?:CompressionInfo|Statistics|Filter|Index|Partitions)\.db$/.test(each),
      )) {
        const path = join(directory, name);
        const bytes = readFileSync(path);
        const results = new Set<string>();
        const resultOf = async (damaged: Buffer) => {
          writeFileSync(path, damaged);
          results.add(await verified());
        };
        for (const length of [0, 1, bytes.length >> 1, bytes.length - 1])
          await resultOf(bytes.subarray(0, length));
        // A flipped bit in a key or in the filter hides a row, and nothing shows it.
        const step = /-(?:CompressionInfo|Statistics)\.db$/.test(name)
          ? Math.ceil(bytes.length / 20)
          : Infinity;
        for (let at = step - 1; at < bytes.length; at += step) {
          // From which length on a chunk is not compressed: most numbers mean the same.
          if (name.endsWith('-CompressionInfo.db') && at >= 23 && at < 27) continue;
          const damaged = Buffer.from(bytes);
          damaged[at]! ^= 1 << (at % 7);
          await resultOf(damaged);
        }
        writeFileSync(path, bytes);
        for (const length of [1, 7, 100, 1e6])
          expect(
            await cutIndexOf((suffix) => path.replace(/-\w+\.db$/, suffix), reading(length)),
          ).toBeUndefined();
        // The name of a compressor that nobody knows is not known to be wrong.
        results.delete('unknown');
        expect([name, ...results]).toEqual([name, 'corrupt']);
      }
    }
    expect(await verified()).toBe('ok');
  },
);
