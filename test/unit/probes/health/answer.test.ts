import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { answerIn, faultOf, verdictOf } from '../../../../src/probes/health/health-check.ts';
import { excerpt } from '../../../../src/probes/probe.ts';

describe('an answer in a text', () => {
  test.each([
    ['{"ok":true,"msg":"OK"}', { ok: true, msg: 'OK' }],
    ['{"ok":true}', { ok: true, msg: '' }],
    ['{"ok":false,"msg":"WarmingUp"}', { ok: false, msg: 'WarmingUp' }],
    ['{"ok":true,"message":"matching good"}', { ok: true, msg: 'matching good' }],
    ['{"ok":true,"msg":"one","message":"two"}', { ok: true, msg: 'one' }],
    ['{"ok":true,"msg":7}', { ok: true, msg: '' }],
    ['{"ok":true,"msg":"x","uptime":5}', { ok: true, msg: 'x' }],
    ['{"message":"ShuttingDown"}', { ok: false, msg: 'ShuttingDown' }],
    ['{"msg":"WarmingUp"}', { ok: false, msg: 'WarmingUp' }],
    ['{"message":"Not Found","path":"/health"}', undefined],
    ['{}', undefined],
    ['{"ok":"true","msg":"OK"}', undefined],
    ['{"ok":1}', undefined],
    ['{"ok":null,"msg":"OK"}', undefined],
    ['{"status":"UP"}', undefined],
    ['[{"ok":true}]', undefined],
    ['null', undefined],
    ['true', undefined],
    ['OK', undefined],
    ['', undefined],
    ['{"ok":true', undefined],
  ])('%s', (text, answer) => expect(answerIn(text)).toEqual(answer));
});

describe('what a message tells', () => {
  test.each([
    ['WarmingUp', 'warming_up'],
    ['warming up', 'warming_up'],
    ['WARMING_UP', 'warming_up'],
    ['service has not started', 'warming_up'],
    ['ShuttingDown', 'shutting_down'],
    ['the server is shutting down', 'shutting_down'],
    ['SHUTDOWN in progress', 'shutting_down'],
    ['not in ring', 'not_in_ring'],
    ['NotInRing', 'not_in_ring'],
    ['host is not a member of the hashring', 'not_in_ring'],
    ['persistence is not healthy', 'persistence'],
    ['Persistence: no connection', 'persistence'],
    ['PERSISTENCE_UNAVAILABLE', 'persistence'],
    ['datastore: no host answered', 'persistence'],
    ['shutting down: left the ring', 'shutting_down'],
    ['unknown', 'not_ok'],
    ['restarting the string engine during warmth', 'not_ok'],
    ['', 'not_ok'],
  ])('%s', (msg, reason) => expect(faultOf({ ok: false, msg })?.reason).toBe(reason));

  test('a role that is well is well, whatever it says', () => {
    expect(faultOf({ ok: true, msg: 'persistence, ring, ShuttingDown' })).toBeUndefined();
  });
});

describe('the verdict over HTTP', () => {
  const json = (status: number, body: unknown) =>
    verdictOf({ status, contentType: 'application/json', body: JSON.stringify(body) });
  test.each([
    [200, { ok: true, msg: 'OK' }, undefined],
    [204, { ok: true, msg: 'OK' }, undefined],
    [200, { ok: false, msg: 'x' }, 'not_ok'],
    [503, { ok: false, msg: 'WarmingUp' }, 'warming_up'],
    [500, { ok: false, msg: 'x' }, 'not_ok'],
    [401, { ok: false, msg: 'x' }, 'credentials'],
    [503, { ok: true, msg: 'OK' }, 'http_status'],
    [404, { ok: true }, 'http_status'],
    [200, { status: 'UP' }, 'invalid_answer'],
    [500, { error: 'x' }, 'http_status'],
    [401, { error: 'x' }, 'credentials'],
    [403, 'no', 'credentials'],
  ])('%d with %j', (status, body, reason) => {
    const { fault, details } = json(status, body);
    expect(fault?.reason).toBe(reason);
    expect(details).toEqual({ protocol: 'http', httpStatus: status });
  });

  test('says what came instead', () => {
    const reply = { status: 200, contentType: 'text/html', body: '<html>\n<b>hello</b>' };
    expect(verdictOf(reply).fault?.msg).toBe(
      'not a JSON object with ok and msg: text/html, "<html> <b>hello</b>"',
    );
  });
});

test('a text of others is one short line, whatever it holds', () => {
  expect(excerpt('a\u0000b\r\n\u001b[31mc\u0085d\u202ee')).toBe('a b [31mc d e');
  expect(excerpt('é'.repeat(300))).toBe(`${'é'.repeat(200)}…`);
  expect(excerpt('😀'.repeat(300))).toBe(`${'😀'.repeat(200)}…`);
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => {
      const line = excerpt(text);
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udbff](?![\udc00-\udfff])/);
      expect([...line].length).toBeLessThanOrEqual(201);
    }),
  );
});
