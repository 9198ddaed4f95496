import { expect, test } from 'vitest';
import { archivalUri } from '../../../../src/probes/archival/archives.ts';

test.each([
  ['s3://bucket/a/b/', { scheme: 's3', bucket: 'bucket', path: 'a/b/' }],
  ['s3://bucket/a/b', { scheme: 's3', bucket: 'bucket', path: 'a/b/' }],
  ['gs://my.bucket-1', { scheme: 'gs', bucket: 'my.bucket-1', path: '' }],
  ['gs://bucket//', { scheme: 'gs', bucket: 'bucket', path: '' }],
  ['s3://bucket/a%20b/', { scheme: 's3', bucket: 'bucket', path: 'a b/' }],
  ['azure+blob://bucket/a/', { scheme: 'azure+blob', bucket: 'bucket', path: 'a/' }],
  ['file:///var/archive/', { scheme: 'file', bucket: '', path: '/var/archive/' }],
  ['file:///var/my%20archive', { scheme: 'file', bucket: '', path: '/var/my archive' }],
])('%s', (text, uri) => expect(archivalUri.read(text)).toEqual(uri));

test.each([
  '',
  'bucket/path',
  's3:///path/',
  's3://key:secret@bucket/',
  's3://bucket/?versioned',
  's3://../other/',
  's3://bucket/%zz/',
  'S3://bucket/',
  'file://host/path/',
  'file://',
  'file:///a b/',
])('%j is none', (text) => expect(archivalUri.read(text)).toBeUndefined());
