import { fieldsOf, packedOf } from '../../../core/protobuf-fields.ts';
import type { Form } from '../batch.ts';
import { type Row, type Word, wordOf } from './row.ts';

const noWord = wordOf(Buffer.alloc(0));

function isStale(bits: Buffer): boolean {
  return bits.readUInt32LE(0) === 2 && bits.readUInt32LE(4) === 0x7ff0_0000;
}

function readSample(bytes: Buffer, row: Row): void {
  for (const { field, value, bytes: bits } of fieldsOf(bytes)) {
    if (field === 1) {
      row.stale = isStale(bits);
      row.value = bits.readDoubleLE(0);
    } else if (field === 2) row.timeMs = value;
    else if (field === 3) row.startMs = value;
  }
}

const emptyRow = (): Row => ({
  labels: [],
  type: 0,
  help: noWord,
  value: 0,
  stale: false,
  timeMs: 0,
  startMs: 0,
});

function row1(message: Buffer): Row {
  const row = emptyRow();
  const labels: Word[] = [];
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) for (const part of fieldsOf(bytes)) labels.push(wordOf(part.bytes));
    else if (field === 2) readSample(bytes, row);
  }
  return { ...row, labels };
}

function row2(message: Buffer, symbols: readonly Word[]): Row {
  const row = emptyRow();
  const word = (ref: number): Word => {
    const found = symbols[ref];
    if (!found) throw new RangeError('a symbol is missing');
    return found;
  };
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) row.labels = [...packedOf(bytes)].map(word);
    else if (field === 2) readSample(bytes, row);
    else if (field === 5) {
      for (const { field: part, value } of fieldsOf(bytes)) {
        if (part === 1) row.type = value;
        else if (part === 3) row.help = word(value);
      }
    }
  }
  return row;
}

/** What a body of ours says, to say it in other words. Throws `RangeError` on bytes that are none. */
export function rowsOf(form: Form, message: Buffer): Row[] {
  const fields = [...fieldsOf(message)];
  if (form === 'rw1') return fields.filter(({ field }) => field === 1).map(({ bytes }) => row1(bytes));
  const symbols = fields.filter(({ field }) => field === 4).map(({ bytes }) => wordOf(bytes));
  return fields.filter(({ field }) => field === 5).map(({ bytes }) => row2(bytes, symbols));
}
