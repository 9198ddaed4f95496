import { expect, test } from 'vitest';
import { namesOf } from '../../../src/reporters/listen/protection.ts';

test.each([
  [undefined, []],
  ['', []],
  ['DNS:a.example', ['a.example']],
  ['DNS:a.example, IP Address:10.0.0.1, email:a@b.c', ['a.example', '10.0.0.1', 'a@b.c']],
  ['URI:spiffe://a/b', ['spiffe://a/b']],
  ['IP Address:FD00:0:0:0:0:0:0:7', ['fd00::7']],
  ['URI:"https://a/,DNS:evil.example"', ['https://a/,DNS:evil.example']],
  ['DNS:"a.example\\u002c DNS:evil.example", DNS:b', ['a.example, DNS:evil.example', 'b']],
  ['othername:<unsupported>, DNS:b', ['b']],
  ['nonsense "DNS:evil.example", DNS:evil.example', []],
  ['DirName:"CN=a, DNS:evil.example", DNS:b', ['b']],
])('%j', (subjectAltName, expected) => {
  expect(namesOf({ subjectAltName })).toEqual(expected);
});
