const powersOfTen = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));
const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const special = /^([+-]?)(?:inf(?:inity)?|(nan))$/i;

/**
 * A sample value as both text formats spell it: Go's decimal floats, `NaN` and `Inf` in any case, with or
 * without a sign. Hexadecimal floats and digit separators are none. Undefined for anything else.
 */
export function parseValue(text: string): number | undefined {
  if (decimal.test(text)) return Number(text);
  const match = special.exec(text);
  if (match === null) return undefined;
  if (match[2] !== undefined) return Number.NaN;
  return match[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

/** Where `fastValue` stopped: the index behind the number. Valid until its next call. */
export const cursor = { at: 0 };

/**
 * The plain decimal that begins at `at` (`12`, `-0.5`, `1.2e+06`), exact to the last bit: up to 15 digits are
 * an exact integer, and one multiplication or division by an exact power of ten rounds once. Leaves the index
 * behind it in `cursor`; an index of -1 says that it is not such a number, and `parseValue` must decide.
 * `bytes` must hold a newline somewhere behind `at`, which ends every loop.
 */
export function fastValue(bytes: Uint8Array, at: number): number {
  let i = at;
  const negative = bytes[i] === 0x2d;
  if (negative) i++;
  let mantissa = 0;
  const start = i;
  let byte = bytes[i]!;
  while (byte >= 0x30 && byte <= 0x39) {
    mantissa = mantissa * 10 + (byte - 0x30);
    byte = bytes[++i]!;
  }
  let digits = i - start;
  let scale = 0;
  if (byte === 0x2e) {
    const point = i;
    byte = bytes[++i]!;
    while (byte >= 0x30 && byte <= 0x39) {
      mantissa = mantissa * 10 + (byte - 0x30);
      byte = bytes[++i]!;
    }
    scale = i - point - 1;
    digits += scale;
  }
  if (digits === 0 || digits > 15) return giveUp();
  cursor.at = i;
  if (byte === 0x65 || byte === 0x45) {
    scale -= exponentAt(bytes, i + 1);
    if (cursor.at === -1) return 0;
  }
  if (scale > 22 || scale < -22) return giveUp();
  const value = scale > 0 ? mantissa / powersOfTen[scale]! : mantissa * powersOfTen[-scale]!;
  return negative ? -value : value;
}

function exponentAt(bytes: Uint8Array, at: number): number {
  let i = at;
  const sign = bytes[i];
  if (sign === 0x2b || sign === 0x2d) i++;
  const start = i;
  let exponent = 0;
  for (let byte = bytes[i]!; byte >= 0x30 && byte <= 0x39; byte = bytes[++i]!) {
    exponent = exponent * 10 + (byte - 0x30);
  }
  if (i === start || i - start > 3) return giveUp();
  cursor.at = i;
  return sign === 0x2d ? -exponent : exponent;
}

function giveUp(): number {
  cursor.at = -1;
  return 0;
}
