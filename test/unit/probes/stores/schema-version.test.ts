import { describe, expect, test } from 'vitest';
import { isAtLeast } from '../../../../src/probes/stores/store-finding.ts';
import { versionIn } from '../../../../src/probes/stores/store-probe.ts';

describe('versions are compared number by number', () => {
  test.each([
    ['0.10', '0.9', true],
    ['0.9', '0.10', false],
    ['0.9', '0.9', true],
    ['1.0', '1', true],
    ['1', '1.0', true],
    ['1', '1.0.1', false],
    ['2', '1.99', true],
    ['0.09', '0.9', true],
    ['99999999999999999999.1', '99999999999999999998.2', true],
    ['', '0.9', undefined],
    ['v0.9', '0.9', undefined],
    ['0.9-beta', '0.9', undefined],
  ])('%s is at least %s: %s', (found, expected, holds) => expect(isAtLeast(found, expected)).toBe(holds));
});

describe('the version in what a schema tool prints', () => {
  test.each([
    ['0.8', '0.8'],
    ['v0.52\n', '0.52'],
    ['7\n', '7'],
    ['Current schema version: 0.10\nlatest is 0.12\n', '0.10'],
    ['version="1.2.3"', '1.2.3'],
    ['0.9.', '0.9'],
    ['2026-01-02T03:04:05.678Z INFO connected to 127.0.0.1:5432, version 0.9', '0.9'],
    ['12:30:05.123 at 10.0.0.5:9042: schema_version=0.7', '0.7'],
    ['3 rows', undefined],
    ['', undefined],
  ])('%j is %s', (output, version) => expect(versionIn(output)).toBe(version));
});
