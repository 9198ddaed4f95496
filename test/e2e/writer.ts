import { closeSync, copyFileSync, ftruncateSync, openSync, renameSync, writeSync } from 'node:fs';

const levels = ['debug', 'info', 'warn', 'error', 'fatal'];
const loggers = ['history-engine', 'shard', 'transfer-queue-processor', undefined];

/** A log file in the spec's shape, and how many lines of which level and logger were written to it. */
export interface Writer {
  readonly written: ReadonlyMap<string, number>;
  total(): number;
  /** Appends `lines` lines in a few writes, which may end in the middle of a line, except for the last. */
  write(lines: number): void;
  rotateByRename(to: string): void;
  /** Rotates like logrotate's copytruncate; the caller pauses writing around it. */
  rotateByCopyTruncate(to: string): void;
  close(): void;
}

export const keyOf = (level: string, logger: string | undefined) => `${level}/${logger ?? ''}`;

export function createWriter(path: string): Writer {
  let fd = openSync(path, 'a');
  let sequence = 0;
  const written = new Map<string, number>();
  const line = () => {
    const n = sequence++;
    const level = levels[n % 7 === 3 ? 3 : n % 31 === 5 ? 4 : n % 3]!;
    const logger = loggers[n % loggers.length];
    const key = keyOf(level, logger);
    written.set(key, (written.get(key) ?? 0) + 1);
    const entry = {
      ts: new Date().toISOString(),
      level,
      msg: `event ${n}`,
      logger,
      'wf-domain-name': 'orders',
      'shard-id': n % 64,
    };
    return `${JSON.stringify(entry)}\n`;
  };
  return {
    written,
    total: () => sequence,
    write(lines) {
      const bytes = Buffer.from(Array.from({ length: lines }, line).join(''));
      const half = Math.floor(bytes.length / 2);
      writeSync(fd, bytes, 0, half);
      writeSync(fd, bytes, half);
    },
    rotateByRename(to) {
      renameSync(path, to);
      closeSync(fd);
      fd = openSync(path, 'a');
    },
    rotateByCopyTruncate(to) {
      copyFileSync(path, to);
      ftruncateSync(fd, 0);
    },
    close: () => closeSync(fd),
  };
}
