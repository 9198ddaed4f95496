import { expect, test } from 'vitest';
import { checkOffsite, type OffsiteTarget } from '../../../src/agent/backup-offsite.ts';

const region = 'eu-west-1';

test.each<Partial<OffsiteTarget>>([
  {},
  { target: '/mnt/away' },
  { target: 'backups:bucket/svc' },
  { target: 'backups:bucket', region },
  { target: 'backups:bucket/svc/', region, endpoint: 'https://s3.example.com/base' },
  { target: 'backups:bucket', region, endpoint: 'minio:9000' },
])('%o is taken', (options) => {
  expect(() => checkOffsite(options)).not.toThrow();
});

test.each<[string, Partial<OffsiteTarget>, string]>([
  ['no target', { region }, '--region without --offsite, got "eu-west-1"; add --offsite REMOTE:BUCKET/PATH'],
  [
    'no region',
    { target: 'a:b', endpoint: 'minio' },
    '--endpoint without --region, got "minio"; add the region',
  ],
  [
    'a directory',
    { target: '/mnt', region },
    '--offsite is not a bucket, got "/mnt"; use REMOTE:BUCKET/PATH',
  ],
  [
    'a remote of other letters',
    { target: 'my-away:b', region },
    '--offsite is not a bucket, got "my-away:b"',
  ],
  ['an empty target', { target: '' }, '--offsite is empty, got ""; give a value, or leave the option out'],
  ['an empty region', { target: 'a:b', region: '' }, '--region is empty, got ""'],
  ['an empty endpoint', { target: 'a:b', region, endpoint: '' }, '--endpoint is empty, got ""'],
  [
    'another scheme',
    { target: 'a:b', region, endpoint: 'ftp://s3' },
    '--endpoint is not that of an object store, got "ftp://s3"; use the form https://s3.example.com',
  ],
])('%s is refused', (_, options, message) => {
  expect(() => checkOffsite(options)).toThrow(`svc-agent backup plan: ${message}`);
});
