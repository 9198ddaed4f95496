import type { StoreVerdict } from '../store.ts';
import { type Answer, numberOf, type Row } from './answer.ts';

/** One source that the server copies. */
export interface Channel {
  name: string;
  ioRunning: string;
  sqlRunning: string;
  /** Of the last error that stopped it; 0 for none. */
  errno: number;
  /** Null while it does not copy: unknown, not 0. */
  secondsBehind: number | null;
}

/** MySQL 8.0.22 gave the columns new names. */
function column(row: Row, ...names: readonly string[]): string {
  return names.map((name) => row[name]).find((value) => value !== undefined && value !== null) ?? '';
}

const errnos = ['Last_Errno', 'Last_SQL_Errno', 'Last_IO_Errno'];

export function channelOf(row: Row): Channel {
  return {
    name: column(row, 'Connection_name', 'Channel_Name'),
    ioRunning: column(row, 'Replica_IO_Running', 'Slave_IO_Running'),
    sqlRunning: column(row, 'Replica_SQL_Running', 'Slave_SQL_Running'),
    errno: errnos.map((name) => numberOf(row[name]) ?? 0).find((errno) => errno !== 0) ?? 0,
    secondsBehind: numberOf(column(row, 'Seconds_Behind_Source', 'Seconds_Behind_Master')) ?? null,
  };
}

function works({ ioRunning, sqlRunning, errno, secondsBehind }: Channel): boolean {
  return ioRunning === 'Yes' && sqlRunning === 'Yes' && errno === 0 && secondsBehind !== null;
}

/** The server's own text may hold the statement that failed, and so somebody's data: only its number is told. */
function said({ name, ioRunning, sqlRunning, errno, secondsBehind }: Channel): string {
  const lead = name === '' ? '' : `${name}: `;
  const failed = errno === 0 ? '' : `, error ${errno}`;
  return `${lead}IO thread ${ioRunning}, SQL thread ${sqlRunning}${failed}, ${secondsBehind ?? 'unknown'} s behind`;
}

export interface Replication {
  replica?: boolean;
  channels: readonly Channel[];
  verdicts: readonly StoreVerdict[];
}

/** What the server says of the sources that it copies; one that copies none has no verdict. */
export function replicationOf(status: Answer): Replication {
  if (status.rows === undefined) {
    return { channels: [], verdicts: [{ check: 'replica', holds: 'unknown', found: status.unknown }] };
  }
  const channels = status.rows.map(channelOf);
  if (channels.length === 0) return { replica: false, channels, verdicts: [] };
  const found = channels.map(said).join('; ');
  return { replica: true, channels, verdicts: [{ check: 'replica', holds: channels.every(works), found }] };
}
