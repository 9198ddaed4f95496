import { errors } from 'cassandra-driver';
import { expect, test } from 'vitest';
import { ProbeError } from '../../../../src/probes/probe.ts';
import { cassandraFault } from '../../../../src/probes/stores/cassandra-connection.ts';

const closed = (innerError?: Error) =>
  Object.assign(new Error('Socket was closed'), { isSocketError: true, innerError });
const coded = (code: string) => Object.assign(new Error(`a ${code}`), { code });

test.each([
  [new ProbeError('database_missing', 'no such keyspace'), 'database_missing', 'no such keyspace'],
  [new errors.AuthenticationError('wrong'), 'credentials', 'wrong'],
  [new errors.ResponseError(0x0100, 'bad'), 'credentials', 'bad'],
  [
    new errors.AuthenticationError('Cannot achieve consistency level QUORUM'),
    'query_failed',
    'the nodes that hold system_auth do not answer: Cannot achieve consistency level QUORUM',
  ],
  [new errors.ResponseError(0x2100, 'not yours'), 'denied', 'not yours'],
  [new errors.ResponseError(0x000a, 'which version?'), 'protocol', 'which version?'],
  [new errors.ResponseError(0x0000, 'internal'), 'query_failed', 'internal'],
  [new errors.ResponseError(0x1000, 'unavailable'), 'query_failed', 'unavailable'],
  [new errors.ResponseError(0x1200, 'timed out'), 'query_failed', 'timed out'],
  [new errors.OperationTimedOutError('no reply', 'h'), 'too_slow', 'no reply'],
  [closed(), 'reset', 'Socket was closed'],
  [closed(coded('ECONNRESET')), 'reset', 'a ECONNRESET'],
  [coded('ECONNREFUSED'), 'refused', 'a ECONNREFUSED'],
  [coded('ENOTFOUND'), 'resolve', 'a ENOTFOUND'],
  [AbortSignal.abort().reason, 'too_slow', 'This operation was aborted'],
  [new Error('odd'), 'failed', 'odd'],
  ['odd', 'failed', 'odd'],
  [undefined, 'failed', 'undefined'],
])('%s is %s', (thrown, reason, msg) => {
  expect(cassandraFault(thrown)).toEqual({ reason, msg });
});
