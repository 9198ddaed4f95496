import { expect, test } from 'vitest';
import { redacted } from '../../../src/agent/config/tree.ts';

test.each([
  ['https://user:pass@host/path', 'https://…@host/path'],
  ['mysql://u:p@a@host', 'mysql://…@host'],
  ['u:p@host', '…@host'],
  ['dsn="postgres://u:p@host"', '…@host"'],
  ['one https://u:p@host and u:p@other', 'one https://…@host and …@other'],
  ['https://host/?token=abc&x=1', 'https://host/?token=…&x=…'],
  ['https://host/?a?b=secret', 'https://host/?a?b=…'],
  ['https://host/path', 'https://host/path'],
  ['a text without a secret', 'a text without a secret'],
])('%s is shown as %s', (text, shown) => expect(redacted(text)).toBe(shown));

// The texts are as long as a configuration file may be. If an expression were tried again from each character, one of them would
// take hours.
test.each(['$' + '{A:', '?', '&a', 'https://', 'a.', '@', '?a='])('%s without an end is redacted', (part) => {
  const text = part.repeat((1 << 20) / part.length);
  expect(redacted(text).length).toBeLessThanOrEqual(text.length + 1);
});
