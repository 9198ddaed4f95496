import fc from 'fast-check';
import protobuf from 'protobufjs';
import { expect, test } from 'vitest';
import {
  framed,
  grpcTimeout,
  messageOf,
  methodsFor,
  numberAndText,
  textMessage,
  unframed,
  usualRpcService,
} from '../../../../src/probes/health/grpc-check.ts';

const { root } = protobuf.parse(`
  syntax = "proto3";
  message HealthCheckRequest { string service = 1; }
  message HealthCheckResponse { int32 status = 1; }
  message HealthResponse { bool ok = 1; string message = 2; }
`);
const type = (name: string) => root.lookupType(name);
const encoded = (name: string, value: object) => Buffer.from(type(name).encode(value).finish());

test('a request is what another encoder makes of it', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300, unit: 'grapheme' }), (service) => {
      const expected = service === '' ? Buffer.alloc(0) : encoded('HealthCheckRequest', { service });
      expect(textMessage(service)).toEqual(expected);
    }),
  );
});

test('an answer is read as another encoder wrote it', () => {
  fc.assert(
    fc.property(fc.boolean(), fc.string({ maxLength: 300, unit: 'grapheme' }), (ok, message) => {
      const read = numberAndText(unframed(framed(encoded('HealthResponse', { ok, message }))));
      expect(read).toEqual({ number: Number(ok), text: message });
    }),
  );
});

test('proto3 leaves out what is false', () => {
  expect(numberAndText(Buffer.alloc(0))).toEqual({ number: 0, text: '' });
});

test.each([
  ['cut off', [0, 0, 0, 0, 2, 8]],
  ['without a head', [0, 0]],
  ['empty', []],
  ['compressed', [1, 0, 0, 0, 0]],
  ['two messages', [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
])('a frame that is %s', (_, bytes) => {
  expect(() => unframed(Buffer.from(bytes))).toThrow(expect.objectContaining({ reason: 'invalid_answer' }));
});

test('a message that is none', () => {
  expect(() => numberAndText(Buffer.from([0x12, 9, 1]))).toThrow(
    expect.objectContaining({ reason: 'invalid_answer' }),
  );
});

test.each([
  [1, 'SERVING', true],
  [0, 'UNKNOWN', false],
  [2, 'NOT_SERVING', false],
  [3, 'SERVICE_UNKNOWN', false],
  [9, 'status 9', false],
])('status %d of the standard is %s', (status, msg, ok) => {
  const [standard] = methodsFor('', undefined);
  expect(standard!.read(encoded('HealthCheckResponse', { status }))).toEqual({ ok, msg });
});

test('which methods are tried, and in which order', () => {
  const paths = (service: string, last?: string) => methodsFor(service, last).map(({ path }) => path);
  const [check, health] = ['grpc.health.v1.Health/Check', 'uber.cadence.api.v1.MetaAPI/Health'];
  expect(paths('')).toEqual([check, health]);
  expect(paths('', 'standard')).toEqual([check, health]);
  expect(paths('', 'own')).toEqual([health, check]);
  expect(paths('my.pkg.Frontend')).toEqual([check, health]);
  expect(paths('svc.api.v1.MetaAPI')).toEqual(['svc.api.v1.MetaAPI/Health']);
});

test.each([
  ['', 'frontend', 'cadence-frontend'],
  ['', 'acme-history', 'cadence-history'],
  ['svc.api.v1.MetaAPI', 'matching', 'svc-matching'],
  ['uber.cadence.api.v1.MetaAPI', 'worker', 'cadence-worker'],
])('inside the product %j %s is %s', (service, role, name) => {
  expect(usualRpcService(service, role)).toBe(name);
});

test.each([
  ['plain', 'plain'],
  ['50%25 of it: %C3%A9', '50% of it: é'],
  ['100% bad', '100% bad'],
])('the message %s', (header, text) => expect(messageOf(header)).toBe(text));

test.each([
  [5000, '5000m'],
  [0.2, '1m'],
  [99_999_999, '99999999m'],
  [604_800_000, '604800S'],
])('%d ms as a timeout is %s', (timeoutMs, text) => expect(grpcTimeout(timeoutMs)).toBe(text));
