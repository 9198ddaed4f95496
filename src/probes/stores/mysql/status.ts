import type { StoreLook } from '../store.ts';
import { type Ask, answerOf, byName, listed, type Named, numberOf } from './answer.ts';
import type { Flavour } from './flavour.ts';

const statusNames = [
  'uptime',
  'threads_connected',
  'threads_running',
  'max_used_connections',
  'aborted_connects',
  'wsrep_cluster_state_uuid',
] as const;

export interface Status {
  values: Named;
  /** The server's clock at that moment, whole seconds since the epoch. */
  nowSeconds?: number;
}

/**
 * The counters and the clock in one statement: both are whole seconds of the same moment, so that their difference
 * is the same in every look until the server restarts.
 */
export async function statusOf(ask: Ask, { statusTables }: Flavour): Promise<Status> {
  for (const table of statusTables) {
    const { rows } = await answerOf(
      ask,
      `SELECT VARIABLE_NAME AS name, VARIABLE_VALUE AS value, UNIX_TIMESTAMP() AS now
        FROM ${table} WHERE VARIABLE_NAME IN (${listed(statusNames)})`,
    );
    if (rows?.[0] !== undefined) return { values: byName(rows), nowSeconds: numberOf(rows[0].now) };
  }
  const { rows = [] } = await answerOf(
    ask,
    `SHOW GLOBAL STATUS WHERE Variable_name IN (${listed(statusNames)})`,
  );
  return { values: byName(rows) };
}

export function startedAtMs({ values, nowSeconds }: Status): number | undefined {
  const uptimeSeconds = numberOf(values.get('uptime'));
  if (uptimeSeconds === undefined || nowSeconds === undefined) return undefined;
  return (nowSeconds - uptimeSeconds) * 1000;
}

/** Threads of the server itself may be among the running ones, but never more than are connected. */
export function connectionsOf({ values }: Status): StoreLook['connections'] {
  const connected = numberOf(values.get('threads_connected'));
  const running = numberOf(values.get('threads_running'));
  if (connected === undefined || running === undefined) return undefined;
  const busy = Math.min(running, connected);
  return { running: busy, idle: connected - busy };
}
