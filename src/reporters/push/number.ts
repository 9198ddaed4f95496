/**
 * The shortest decimal that reads back as the same double, without an exponent: some receivers know none.
 * Takes finite numbers only.
 */
export function plainNumber(value: number): string {
  const text = String(value);
  if (!text.includes('e')) return text;
  const [, sign = '', whole = '', fraction = '', power] = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text)!;
  const digits = whole + fraction;
  const exponent = Number(power);
  return exponent > 0
    ? `${sign}${digits.padEnd(exponent + 1, '0')}`
    : `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
}
