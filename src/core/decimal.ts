const powersOfTen = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));
const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const special = /^([+-]?)(?:inf(?:inity)?|(nan))$/i;

/**
 * Decimal numbers in text: the one parser and the one formatter of the agent. The parser has a fast path over bytes (`fastValue`)
 * and an exact path over a string (`parseValue`); both return the nearest double.
 */

/**
 * Parses a sample value as both exposition formats spell it: Go's decimal floats, `NaN` and `Inf` in any case, with or without a
 * sign. Hexadecimal floats, digit separators and numbers beyond a double, which Go refuses too, are not accepted. Undefined for
 * anything else.
 */
export function parseValue(text: string): number | undefined {
  if (decimal.test(text)) {
    const value = Number(text);
    return Number.isFinite(value) ? value : undefined;
  }
  const match = special.exec(text);
  if (match === null) return undefined;
  if (match[2] !== undefined) return Number.NaN;
  return match[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

/** The index after the number that `fastValue` read last, or -1. */
export const cursor = { at: 0 };

/**
 * Reads the plain decimal that begins at `at` (`12`, `-0.5`, `1.2e+06`). The result is exact: up to 15 digits are an exact
 * integer, and one multiplication or division by an exact power of ten rounds once. Sets `cursor.at` to the index after the
 * number. -1 means that this path cannot read the number: call `parseValue`. A byte that is not part of a number, such as a
 * newline or a quote, must follow in `bytes`: it ends every loop.
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
  if (digits === 0 || digits > 15) return notPlain();
  cursor.at = i;
  if (byte === 0x65 || byte === 0x45) {
    scale -= exponentAt(bytes, i + 1);
    if (cursor.at === -1) return 0;
  }
  if (scale > 22 || scale < -22) return notPlain();
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
  if (i === start || i - start > 3) return notPlain();
  cursor.at = i;
  return sign === 0x2d ? -exponent : exponent;
}

function notPlain(): number {
  cursor.at = -1;
  return 0;
}

/**
 * The shortest decimal text of a finite number that reads back as the same double, without an exponent, because
 * `le` labels and some statsd servers do not accept one: `0.001`, `1`, `10`.
 */
export function formatDecimal(value: number): string {
  const text = String(value);
  const exponent = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
  if (!exponent) return text;
  const [, sign = '', head = '', tail = '', power = ''] = exponent;
  const digits = head + tail;
  const point = 1 + Number(power);
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  return sign + digits.padEnd(point, '0');
}
