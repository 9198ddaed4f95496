import { expect, test } from 'vitest';
import { redactedMessage } from '../../../src/core/redacted.ts';
import { excerpt } from '../../../src/core/text-formats.ts';

test.each([
  ['password=hunter2 host=db', 'password=… host=db'],
  ['pwd: hunter2, user: a', 'pwd: …, user: a'],
  ['{"token":"abc.def"}', '{"token":"…"}'],
  ['Authorization: Bearer abcdefghijkl', 'Authorization: …'],
  ['sent bearer abcdefghijkl to it', 'sent bearer … to it'],
  ['dial postgres://app:s3cret@db:5432/x', 'dial postgres://…@db:5432/x'],
  ['dial svc:s3:c@ret@tcp(db:3306)/x', 'dial …@tcp(db:3306)/x'],
  ['open app:s3cret@unix(/run/db.sock)', 'open …@unix(/run/db.sock)'],
  ['DB_PASSWORD=s3cret aws_secret_access_key=s3cret', 'DB_PASSWORD=… aws_secret_access_key=…'],
  ['dbPassword: s3cret, client_secret=s3cret&x=1', 'dbPassword: …, client_secret=…&x=1'],
  [`password='two words' host=db`, `password='…' host=db`],
  ['{"password":"s3\\"cret","user":"a"}', '{"password":"…","user":"a"}'],
  ['{\\"password\\":\\"s3cret\\",\\"user\\":1}', '{\\"password\\":\\"…\\",\\"user\\":1}'],
  ['password=s3"cret\\more host=db', 'password=… host=db'],
  ['bypass=true compass: north', 'bypass=true compass: north'],
  ['api_key=1 apiKey=2 access-key: 3', 'api_key=… apiKey=… access-key: …'],
  ['jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl expired', 'jwt eyJ… expired'],
  [
    '-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\nx',
    '-----BEGIN EC PRIVATE KEY-----… x',
  ],
  ['-----BEGIN PRIVATE KEY-----\nMHcC', '-----BEGIN PRIVATE KEY-----…'],
  [
    'GET https://a/b?X-Amz-Credential=AK%2F1&X-Amz-Date=2&X-Amz-Signature=3f',
    'GET https://a/b?X-Amz-Credential=…&X-Amz-Date=2&X-Amz-Signature=…',
  ],
  ['GET https://a/b?se=1&sig=3f%2B failed', 'GET https://a/b?se=1&sig=… failed'],
  ['signature: not valid', 'signature: not valid'],
  ['a\u001b[31mred\u202etxt\nb', 'a [31mred txt b'],
  ['the token bucket is empty', 'the token bucket is empty'],
  // Headers: as curl, Go and Node.js print them, with the schemes of products.
  ['authorization: token s3cret', 'authorization: …'],
  ['Authorization: ApiKey s3cret, Accept: */*', 'Authorization: …, Accept: */*'],
  ['map[Authorization:[Bearer s3cret] Accept:[*/*]]', 'map[Authorization:[…] Accept:[*/*]]'],
  ['{"authorization":["Basic s3cret"],"a":1}', '{"authorization":["…"],"a":1}'],
  ['AWS4-HMAC-SHA256 SignedHeaders=host, Signature=3f', 'AWS4-HMAC-SHA256 SignedHeaders=host, Signature=…'],
  ['Cookie: a=1; session=s3cret', 'Cookie: …'],
  // Statements, as they are in the errors of servers.
  ["ALTER ROLE svc PASSWORD 's3''cret' VALID", "ALTER ROLE svc PASSWORD '…' VALID"],
  ["CREATE USER a IDENTIFIED BY 's3cret'", "CREATE USER a IDENTIFIED BY '…'"],
  ["CREATE USER a IDENTIFIED WITH x BY 's3cret'", "CREATE USER a IDENTIFIED WITH x BY '…'"],
  ["SET PASSWORD FOR a = 's3cret'", "SET PASSWORD FOR a = '…'"],
  ["SET PASSWORD FOR a = PASSWORD('s3cret')", "SET PASSWORD FOR a = PASSWORD('…')"],
  // Arguments of commands.
  ['exec: cli --auth-token s3cret describe', 'exec: cli --auth-token … describe'],
  ['exec: ["cli", "--password", "s3cret", "-v"]', 'exec: ["cli", "--password", "…", "-v"]'],
  ['cli --token --verbose', 'cli --token --verbose'],
  ['<password>s3cret</password>', '<password>…</password>'],
  ['ghp_0123456789abcdefghij expired', 'ghp_… expired'],
  // A password with `@` and `/`; a path with `@`.
  ['dial postgres://app:s3/c@ret@db:5432/x', 'dial postgres://…@db:5432/x'],
  ['GET http://db:5432/users/a@b.c failed', 'GET http://db:5432/users/a@b.c failed'],
])('%j is kept as %j', (text, kept) => {
  expect(redactedMessage(text)).toBe(kept);
});

test.each([
  ['dial postgres://app:s3cret@db:5432/x: refused', 'dial postgres://…@db:5432/x: refused'],
  ['cannot open app:s3cret@tcp(db:3306)/svc', 'cannot open …@tcp(db:3306)/svc'],
  ['denied: Bearer abcdefghijkl', 'denied: Bearer …'],
  ['invalid dsn: password=s3cret host=db', 'invalid dsn: password=… host=db'],
  ['{"user":"a","password":"s3cret"}', '{"user":"a","password":"…"}'],
  [
    "Access denied for user 'a'@'db' (using password: YES)",
    "Access denied for user 'a'@'db' (using password: YES)",
  ],
  ['secret: variable is not set, got "P"; set it', 'secret: variable is not set, got "P"; set it'],
  ['X-Api-Key: s3cret and authorization: token s3cret', 'X-Api-Key: … and authorization: …'],
  ['authorization: not permitted', 'authorization: not permitted'],
  ['&Config{User:"a", Password:"s3 cret"}', '&Config{User:"a", Password:"…"}'],
  ['password authentication failed for user "a"', 'password authentication failed for user "a"'],
])('an excerpt of %j is %j', (text, kept) => {
  expect(excerpt(text)).toBe(kept);
});

// If an expression were tried again from each character, it would take seconds.
test.each([
  '-',
  'http://',
  'http://a:',
  'password ',
  'set password for ',
  'authorization: ',
  '<password',
  "password='' ",
])('%j without an end is redacted', (part) => {
  const text = part.repeat(200_000 / part.length);
  expect(redactedMessage(text).length).toBeLessThanOrEqual(text.length);
});
