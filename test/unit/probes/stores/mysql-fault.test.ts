import { describe, expect, test } from 'vitest';
import { mysqlFault } from '../../../../src/probes/stores/mysql-connection.ts';

const thrown = (fields: object, text = 'words') => Object.assign(new Error(text), fields);
const sent = (errno: number) => thrown({ errno, sqlState: 'HY000', sqlMessage: 'words' });

describe('what was thrown, in the agent’s words', () => {
  test.each([
    [1040, 'too_many_connections'],
    [1203, 'denied'],
    [1226, 'denied'],
    [1044, 'denied'],
    [1045, 'credentials'],
    [1049, 'database_missing'],
    [1053, 'shutting_down'],
    [1129, 'denied'],
    [1227, 'denied'],
    [1698, 'credentials'],
    [1927, 'reset'],
    [3159, 'tls'],
    [1030, 'query_failed'],
  ])('error %s of the server is %s', (errno, reason) => {
    expect(mysqlFault(sent(errno))).toMatchObject({
      reason,
      msg: expect.stringContaining(`words (${errno})`),
    });
  });

  test.each([
    ['PROTOCOL_CONNECTION_LOST', 'reset'],
    ['PROTOCOL_SEQUENCE_TIMEOUT', 'too_slow'],
    ['PROTOCOL_ERROR', 'protocol'],
    ['PROTOCOL_UNEXPECTED_PACKET', 'protocol'],
    ['HANDSHAKE_UNKNOWN_ERROR', 'protocol'],
    ['HANDSHAKE_NO_SSL_SUPPORT', 'tls'],
    ['HANDSHAKE_SSL_ERROR', 'tls'],
    ['AUTH_SWITCH_PLUGIN_ERROR', 'credentials'],
    ['ERR_OUT_OF_RANGE', 'protocol'],
    ['ECONNREFUSED', 'refused'],
    ['ENOTFOUND', 'resolve'],
    ['EHOSTUNREACH', 'unreachable'],
    ['ECONNRESET', 'reset'],
    ['ENOSPC', 'failed'],
  ])('%s is %s', (code, reason) => {
    expect(mysqlFault(thrown({ code }))).toEqual({ reason, msg: expect.stringMatching(/^words/) });
  });

  // A system error also has a number, which is not the server's.
  test('an errno of the system is not one of the server', () => {
    expect(mysqlFault(thrown({ errno: -111, code: 'ECONNREFUSED' })).reason).toBe('refused');
  });

  test.each([[undefined], [null], ['words'], [{}], [thrown({}, '')]])('%o does not throw', (odd) => {
    const { reason, msg } = mysqlFault(odd);
    expect(reason).toBe('failed');
    expect(msg).not.toBe('');
  });

  test('the sentence is one line, and no longer than a person reads', () => {
    const { msg } = mysqlFault(thrown({}, `a\nb\u0000c ${'x'.repeat(5000)}`));
    expect(msg).toMatch(/^a b c x+…$/);
    expect(msg.length).toBeLessThan(400);
  });
});
