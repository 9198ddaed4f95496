import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseDescription } from '../../../../src/probes/domains/description.ts';

const folder = new URL('../../../fixtures/domains/', import.meta.url);
const dayMs = 86_400_000;

/** The content of each answer, read by hand. */
const table: Record<string, unknown> = {
  'text-global.txt': {
    name: 'orders',
    description: 'Orders of the shop',
    archivalUris: { history: 's3://archive/history/' },
    activeCluster: 'dc2',
    clusters: ['dc1', 'dc2'],
    global: true,
    activeActive: false,
    retentionMs: 7 * dayMs,
    archival: { history: true, visibility: false },
    failoverHistory: [
      { key: '1772446530123 dc1 dc2', atMs: 1_772_446_530_123, to: 'dc2' },
      { key: '1769932800000 dc2 dc1', atMs: 1_769_932_800_000, to: 'dc1' },
    ],
  },
  'text-local.txt': {
    name: 'batch',
    description: 'Nightly work.',
    activeCluster: 'dc1',
    global: false,
    activeActive: false,
    retentionMs: 30 * dayMs,
    archival: { history: false, visibility: false },
    failoverHistory: [],
  },
  'text-older.txt': {
    name: 'orders',
    activeCluster: 'dc1',
    clusters: ['dc1', 'dc2', 'dc3'],
    retentionMs: 3 * dayMs,
    archival: {},
  },
  'cli-global.json': {
    name: 'orders',
    archivalUris: { history: 'gs://archive/history/', visibility: 'gs://archive/visibility/' },
    activeCluster: 'dc2',
    clusters: ['dc1', 'dc2', 'dc3'],
    global: true,
    failoverVersion: 12,
    activeActive: false,
    retentionMs: 14 * dayMs,
    archival: { history: true, visibility: true },
    failoverHistory: [{ key: '1772446530000 dc1 dc2', atMs: 1_772_446_530_000, to: 'dc2' }],
  },
  'cli-local.json': {
    name: 'batch',
    activeCluster: 'dc1',
    clusters: ['dc1'],
    global: false,
    activeActive: false,
    retentionMs: 30 * dayMs,
    archival: { history: false, visibility: false },
    failoverHistory: [],
  },
  'raw-global.json': {
    name: 'orders',
    archivalUris: { history: 'file:///archive/' },
    activeCluster: 'dc1',
    clusters: ['dc1', 'dc2'],
    global: true,
    failoverVersion: 0,
    retentionMs: 7 * dayMs,
    archival: { history: true, visibility: false },
    failoverHistory: [{ key: '1772446530000 dc2 dc1', atMs: 1_772_446_530_000, to: 'dc1' }],
  },
  'raw-local.json': {
    name: 'batch',
    activeCluster: 'dc1',
    clusters: ['dc1'],
    global: false,
    failoverVersion: -24,
    retentionMs: dayMs,
    archival: { history: false, visibility: false },
  },
  'proto-global.json': {
    name: 'orders',
    activeCluster: 'dc2',
    clusters: ['dc1', 'dc2'],
    global: true,
    failoverVersion: 22,
    retentionMs: 7 * dayMs,
    archival: { history: true, visibility: false },
  },
  'spec-admin.json': {
    name: 'orders',
    activeCluster: 'dc1',
    clusters: ['dc1', 'dc2', 'dc3'],
    global: true,
    retentionMs: 7 * dayMs,
    archival: { history: true, visibility: false },
    failoverHistory: [
      { key: '{"when":"2026-03-02","who":"me"}' },
      { key: '{"when":"2026-02-01","who":"you"}' },
    ],
  },
  'sibling-global.json': {
    name: 'orders',
    activeCluster: 'dc2',
    clusters: ['dc1', 'dc2'],
    global: true,
    failoverVersion: 12,
    retentionMs: 3 * dayMs,
    archival: { history: false, visibility: true },
    failoverHistory: [{ key: '1772446530500 undefined undefined', atMs: 1_772_446_530_500 }],
  },
  'warned.json': {
    name: 'orders',
    activeCluster: 'dc1',
    clusters: ['dc1', 'dc2'],
    global: true,
    retentionMs: 7 * dayMs,
    archival: { history: false, visibility: false },
  },
};

test.each(readdirSync(folder))('%s', (file) => {
  expect(parseDescription(readFileSync(new URL(file, folder), 'utf8'))).toEqual(table[file]);
});

test('every answer of the table is there', () => {
  expect(Object.keys(table).sort()).toEqual(readdirSync(folder).sort());
});

test.each([
  ['nothing', ''],
  ['a list of domains', '[{"Name":"a","ActiveCluster":"dc1"},{"Name":"b","ActiveCluster":"dc1"}]'],
  ['JSON of something else', '{"ok":true,"msg":"fine"}'],
  ['a name alone', 'Name: orders\n'],
  ['a message', 'Error: Domain orders does not exist.\nError Details: EntityNotExistsError'],
  ['a table', '| NAME | ACTIVE |\n| orders | dc1 |'],
  ['names of the wrong kind', '{"ActiveCluster": {"a": 1}, "Name": 7}'],
  ['nesting without end', `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`],
])('%s is no description', (_, printed) => {
  expect(parseDescription(printed)).toBeUndefined();
});

test('a megabyte of blank lines, of beginnings and of one line is read through', () => {
  const lines = '\n'.repeat(1_000_000);
  expect(parseDescription(`${lines}ActiveClusterName: dc1${lines}`)?.activeCluster).toBe('dc1');
  expect(parseDescription('{\n'.repeat(500_000))).toBeUndefined();
  expect(
    parseDescription(`Retention: 1${' '.repeat(1_000_000)}x\nActiveClusterName: dc1`)?.activeCluster,
  ).toBe('dc1');
});

test('one domain in a list is that domain', () => {
  expect(parseDescription('[{"Name":"a","ActiveCluster":"dc1"}]')?.activeCluster).toBe('dc1');
});

test('a domain that is active in several clusters says so', () => {
  expect(
    parseDescription('{"Name":"a","ActiveCluster":"dc1","IsActiveActiveDomain":true}')?.activeActive,
  ).toBe(true);
});

test.each(readdirSync(folder))(
  '%s as a client on Windows prints it, with a byte-order mark and CRLF',
  (file) => {
    const printed = readFileSync(new URL(file, folder), 'utf8');
    const windows = `\ufeff${printed.replace(/\r?\n/g, '\r\n')}`;
    expect(parseDescription(windows)).toEqual(table[file] ?? parseDescription(printed));
    expect(parseDescription(windows)).toBeDefined();
  },
);
