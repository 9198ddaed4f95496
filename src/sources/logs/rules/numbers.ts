import { escapedText, type Fields, numeral, plainText, textOf } from '../lines/fields.ts';

const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const powersOfTen = Float64Array.from({ length: 16 }, (_, exponent) => Number(`1e${exponent}`));

/**
 * Up to 15 digits with at most one point: an exact integer over an exact power of ten, which rounds once.
 * NaN for anything else.
 */
function plainDecimal(bytes: Buffer, from: number, to: number): number {
  const first = bytes[from] === 0x2d ? from + 1 : from;
  let mantissa = 0;
  let point = to;
  let count = 0;
  for (let i = first; i < to; i++) {
    const digit = bytes[i]! - 0x30;
    if (digit >= 0 && digit <= 9) {
      mantissa = mantissa * 10 + digit;
      count++;
    } else if (bytes[i] === 0x2e && point === to) point = i;
    else return Number.NaN;
  }
  if (count === 0 || count > 15) return Number.NaN;
  const value = point === to ? mantissa : mantissa / powersOfTen[to - point - 1]!;
  return first === from ? value : -value;
}

/** The number in a slot, be it a JSON number or a string that spells one; undefined if there is no finite one. */
export function numberOf(fields: Fields, slot: number): number | undefined {
  const kind = fields.kind[slot]!;
  if (kind !== numeral && kind !== plainText && kind !== escapedText) return undefined;
  const fast = plainDecimal(fields.bytes, fields.from[slot]!, fields.to[slot]!);
  if (!Number.isNaN(fast)) return fast;
  const text = (textOf(fields, slot) as string).trim();
  const value = decimal.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? value : undefined;
}
