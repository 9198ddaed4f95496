import { readFileSync } from 'node:fs';
import { AgentError, systemCode } from '../core/errors.ts';

/**
 * The number of open files that is enough for any configuration. Without many log files, connections and stores, fewer are
 * enough.
 */
export const wantedOpenFiles = 1024;

/** How many files the process may have open; undefined if the system does not say. */
export function mostOpenFiles(): number | undefined {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return found ? Number(found[1]) : undefined;
  } catch {
    // Only Linux has `/proc/self/limits`.
    return undefined;
  }
}

/** The number of log files that stay open when the system does not say how many the process may open. */
const usualOpenLogs = 512;
/** Each open file takes about 2 KiB of the kernel's memory, which counts towards the limit of a container. */
const mostOpenLogs = 8192;

/**
 * How many log files may stay open: half of the files that the process may open, at most 8,192. The other half is for
 * connections, stores and the agent's own files.
 */
export function openLogsLimit(most: number | undefined): number {
  return most === undefined ? usualOpenLogs : Math.min(mostOpenLogs, Math.max(1, Math.floor(most / 2)));
}

/**
 * The error for a process that may not open enough files to load its own code; any other error is returned as it is. `most` must
 * be read before, because then no file can be opened.
 */
export function openFilesError(thrown: unknown, most: number | undefined): unknown {
  const code = systemCode(thrown) ?? systemCode((thrown as Error | undefined)?.cause);
  if (thrown instanceof AgentError || code !== 'EMFILE') return thrown;
  const fault = { where: 'open files', what: 'too few are allowed to start', got: most };
  const allowed = `raise ulimit -n, or LimitNOFILE of the systemd unit, to ${wantedOpenFiles}`;
  return new AgentError('open_files', { ...fault, allowed }, thrown);
}
