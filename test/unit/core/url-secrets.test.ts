import { expect, test } from 'vitest';
import { shownUrl, withoutUrlSecrets } from '../../../src/core/redacted.ts';

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
])('%s is shown as %s', (text, shown) => expect(withoutUrlSecrets(text)).toBe(shown));

// The texts are as long as a configuration file may be. If an expression were tried again from each character, one of them would
// take hours.
test.each(['$' + '{A:', '?', '&a', 'https://', 'a.', '@', '?a='])('%s without an end is redacted', (part) => {
  const text = part.repeat((1 << 20) / part.length);
  expect(withoutUrlSecrets(text).length).toBeLessThanOrEqual(text.length + 1);
});

test.each([
  ['https://u:p@host:1/a?x=1#y', 'https://host:1/a'],
  ['https://host/services/T0123456789/write?x', 'https://host/services/…/write'],
  ['grpc://host:1/svc.v1.Service2', 'grpc://host:1/svc.v1.Service2'],
])('of the URL %s logs and pages show %s', (url, shown) => expect(shownUrl(url)).toBe(shown));
