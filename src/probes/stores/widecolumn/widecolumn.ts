import type { StoreKindRow, StoreLook, StoreTarget } from '../store.ts';
import { connect } from './connection.ts';
import { faultOf, withoutSecret } from './failure.ts';
import { read } from './read.ts';

async function look(target: StoreTarget, signal: AbortSignal): Promise<StoreLook> {
  try {
    const connection = await connect(target, signal);
    try {
      return await read(connection, target);
    } finally {
      await connection.close();
    }
  } catch (error) {
    throw withoutSecret(error, target.password);
  }
}

/** Apache Cassandra and what speaks its language; one node is looked at, the others are heard of from it. */
export const widecolumn: StoreKindRow = { look, faultOf };
