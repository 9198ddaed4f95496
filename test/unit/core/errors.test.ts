import { expect, test } from 'vitest';
import { AgentError, errorText, networkFault, systemCode } from '../../../src/core/errors.ts';

// The codes are those of errno(3), of undici and of the TLS library of Node.
test.each<[unknown, string | undefined]>([
  ['ENOTFOUND', 'resolve'],
  ['ECONNREFUSED', 'refused'],
  ['ECONNRESET', 'reset'],
  ['ETIMEDOUT', 'too_slow'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
  ['CERT_HAS_EXPIRED', 'tls'],
  ['ENOSPC', undefined],
  ['toString', undefined],
  [7, undefined],
  [undefined, undefined],
])('a connection that fails with %s: %s', (code, fault) => {
  expect(networkFault(Object.assign(new Error('x'), { code }))).toBe(fault);
});

test.each([undefined, null, 'text', 7, {}])('%j has no code', (thrown) => {
  expect(systemCode(thrown)).toBeUndefined();
});

test('a message is that of the error, or the text of what was thrown', () => {
  expect([errorText(new Error('a')), errorText('b'), errorText(7)]).toEqual(['a', 'b', '7']);
});

test('an error has a cause only if there is one', () => {
  const fault = { where: 'a.b', what: 'wrong', got: 1, allowed: 'use 2' };
  const [code] = ['config_invalid'] as ConstructorParameters<typeof AgentError>[0][];
  expect('cause' in new AgentError(code!, fault)).toBe(false);
  const cause = new Error('below');
  const error = new AgentError(code!, fault, cause);
  expect([error.cause, error.code, error.name]).toEqual([cause, code, 'AgentError']);
});
