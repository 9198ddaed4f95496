import { expect, test } from 'vitest';
import { objectStoreAddress } from '../../../../src/core/text-formats.ts';

test.each([
  ['https://s3.example.com', 'https://s3.example.com', ''],
  ['http://10.0.0.7:9000/', 'http://10.0.0.7:9000', ''],
  ['https://gateway.example.com/objects/', 'https://gateway.example.com', '/objects'],
  ['s3.example', 'https://s3.example', ''],
  ['s3.example:9000', 'https://s3.example:9000', ''],
  ['[::1]:9000', 'https://[::1]:9000', ''],
  ['localhost', 'https://localhost', ''],
])('%s', (text, origin, basePath) => expect(objectStoreAddress.read(text)).toEqual({ origin, basePath }));

test.each([
  '',
  'ftp://s3.example.com',
  'https://key:secret@s3.example.com',
  'https://s3.example.com/?a=b',
  's3.example:0',
  's3.example:70000',
  'two words',
  '//s3.example',
])('%j is none', (text) => expect(objectStoreAddress.read(text)).toBeUndefined());
