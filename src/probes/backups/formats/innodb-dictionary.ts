import { open } from 'node:fs/promises';

/**
 * Reads the tables in InnoDB's own dictionary, `SYS_TABLES` in the system tablespace (MariaDB,
 * storage/innobase/include/dict0boot.h and rem0rec.h). Only the dictionary shows a table of which all files are gone.
 */

/** The page with the dictionary's header, and the position in it of the root of `SYS_TABLES`. */
const [headerPage, rootAt] = [7, 70];
const [nextPageAt, typeAt, levelAt, infimumAt] = [12, 24, 64, 101];
/** The type of a page of a B-tree. */
const indexPage = 17_855;
const noPage = 0xffffffff;
const isDeleted = 0x20;
/** The fields of a row that are read: the name comes first, and the tablespace last. */
const [nameField, spaceField] = [0, 9];
const extraBytes = 6;
/** Limits the cost of a damaged page. */
const mostPages = 100_000;

interface DictionaryTable {
  /** The name as `database/table`, in the form of file names. */
  name: string;
  /** The number of the tablespace; 0 is the system tablespace. */
  space: number;
}

/** The tables in the dictionary; undefined if the file is not a system tablespace of this format. */
export async function readDictionary(
  ibdata: string,
  pageBytes: number,
): Promise<DictionaryTable[] | undefined> {
  const file = await open(ibdata).catch(() => undefined);
  if (file === undefined) return undefined;
  const page = async (number: number): Promise<Buffer | undefined> => {
    const bytes = Buffer.alloc(pageBytes);
    const { bytesRead } = await file.read(bytes, 0, pageBytes, number * pageBytes);
    return bytesRead === pageBytes && bytes.readUInt32BE(4) === number ? bytes : undefined;
  };
  try {
    const header = await page(headerPage);
    let leaf = header && (await page(header.readUInt32BE(rootAt)));
    // MySQL 8 has its dictionary in mysql.ibd.
    if (leaf?.readUInt16BE(typeAt) !== indexPage) return undefined;
    while (leaf && leaf.readUInt16BE(levelAt) > 0) leaf = await page(childOf(leaf));
    const tables: DictionaryTable[] = [];
    for (let pages = 0; leaf && pages < mostPages; pages++) {
      tables.push(...tablesIn(leaf));
      const next = leaf.readUInt32BE(nextPageAt);
      if (next === noPage) return tables;
      leaf = await page(next);
    }
    return undefined;
  } catch (thrown) {
    // A position beyond the end of the page means another format.
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  } finally {
    await file.close();
  }
}

/** The position of each record of a page, in their order. */
function* recordsIn(page: Buffer): Generator<number> {
  const most = page.length / extraBytes;
  let at = page.readUInt16BE(infimumAt - 2);
  for (let count = 0; count < most && at !== 0 && fieldCount(page, at) > 1; count++) {
    yield at;
    at = page.readUInt16BE(at - 2);
  }
}

const fieldCount = (page: Buffer, at: number) => (page.readUInt16BE(at - 4) >> 1) & 0x3ff;

/** The bytes of a field in a record of the format REDUNDANT. */
function fieldOf(page: Buffer, at: number, field: number): Buffer {
  const isShort = (page[at - 3]! & 1) === 1;
  const endOf = (index: number) => {
    if (index < 0) return 0;
    const width = isShort ? 1 : 2;
    const place = at - extraBytes - width * (index + 1);
    return isShort ? page[place]! & 0x7f : page.readUInt16BE(place) & 0x3fff;
  };
  return page.subarray(at + endOf(field - 1), at + endOf(field));
}

function childOf(page: Buffer): number {
  const [first] = recordsIn(page);
  if (first === undefined) throw new RangeError('an inner page without records');
  return fieldOf(page, first, fieldCount(page, first) - 1).readUInt32BE(0);
}

function tablesIn(page: Buffer): DictionaryTable[] {
  return [...recordsIn(page)].flatMap((at) => {
    if ((page[at - extraBytes]! & isDeleted) !== 0 || fieldCount(page, at) <= spaceField) return [];
    const name = fieldOf(page, at, nameField).toString('utf8');
    return [{ name, space: fieldOf(page, at, spaceField).readUInt32BE(0) }];
  });
}
