import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';
import { AgentError, errorText, systemCode } from '../core/errors.ts';
import type { Drops, Log, LogFields } from '../core/ports.ts';
import { unwritableFile } from './config/environment.ts';
import type { LogOptions } from './config/types.ts';

interface OpenLog {
  log: Log;
  /** Closes the log file. */
  close(): void;
}

function unwritable(outputFile: string, what: string, cause?: unknown): AgentError {
  const allowed = 'name a file in a directory that exists and is writable';
  return new AgentError('log_unwritable', { where: 'log.outputFile', what, got: outputFile, allowed }, cause);
}

/** Opens the destination of the log. Throws `log_unwritable` (spec, Logging configuration). */
function openSink({ outputFile, stdout }: LogOptions, onLost: () => void): LogSink {
  const trouble = outputFile && unwritableFile(outputFile);
  if (trouble) throw unwritable(outputFile, trouble);
  try {
    return openLogSink(outputFile ?? (stdout ? 1 : 2), onLost);
  } catch (cause) {
    throw unwritable(outputFile ?? '', `cannot be opened (${errorText(cause)})`, cause);
  }
}

/**
 * The chain of causes, outermost first, so that the entry has ENOSPC, not only "commit failed". A cause that the texts before it
 * contain is left out.
 */
function errorChain(thrown: unknown): string {
  const texts: string[] = [];
  for (
    let error = thrown;
    error !== undefined && texts.length < 5;
    error = (error as { cause?: unknown } | null)?.cause
  ) {
    const text = errorText(error);
    if (!texts.some((one) => one.includes(text))) texts.push(text);
  }
  return texts.join(': ');
}

function wrap(logger: Logger): Log {
  return {
    write(level, msg, fields: LogFields = {}) {
      const error = fields.error === undefined ? undefined : errorChain(fields.error);
      logger[level]({ ...fields, error }, msg);
    },
    named: (name) => wrap(logger.child({ logger: name })),
  };
}

/**
 * The agent's log in the spec's entry: `ts` (ISO 8601), the level in lower case under `levelKey`, `msg`, `logger`, then fields.
 * To stderr unless `outputFile` or `stdout` is set. Throws `log_unwritable`. Entries that cannot be written are counted (`agent`,
 * `log_write`) and are never fatal.
 */
export function createLog(options: LogOptions, drops?: () => Drops | undefined): OpenLog {
  const sink = openSink(options, () => drops?.()?.count('agent', 'log_write'));
  const stream: DestinationStream =
    options.encoding === 'console' ? consoleStream(sink, options.levelKey) : sink;
  const logger = pino(
    {
      level: options.level,
      base: undefined,
      messageKey: 'msg',
      timestamp: () => `,"ts":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ [options.levelKey]: label }) },
    },
    stream,
  );
  return { log: wrap(logger), close: () => sink.close() };
}

/**
 * The spec's `console` encoding, tab-separated like the service's own: ts, level, [logger,] msg, fields as JSON. It parses pino's
 * JSON line, which costs little at an agent's rate of logging.
 */
function consoleStream(sink: DestinationStream, levelKey: string): DestinationStream {
  return {
    write(line: string) {
      const { ts, [levelKey]: level, logger, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
      const rest = Object.keys(fields).length > 0 ? [JSON.stringify(fields)] : [];
      const columns = [ts, level, ...(logger === undefined ? [] : [logger]), oneLine(msg), ...rest];
      sink.write(`${columns.join('\t')}\n`);
    },
  };
}

/** A message without line breaks: with line breaks it would be read as an entry and its stack trace. */
function oneLine(msg: unknown): string {
  return String(msg ?? '')
    .replace(/\s*[\r\n]+\s*/g, ' ')
    .replaceAll('\t', ' ');
}

/** A log whose destination and level a reload can change. */
interface LogSwitch {
  readonly log: Log;
  /** Redirects entries to another log. */
  turn(to: Log): void;
}

export function createLogSwitch(first: Log): LogSwitch {
  let current = first;
  const view = (pick: (log: Log) => Log): Log => {
    let of = current;
    let picked = pick(current);
    return {
      write(level, msg, fields) {
        if (of !== current) [of, picked] = [current, pick(current)];
        picked.write(level, msg, fields);
      },
      named: (name) => view((log) => pick(log).named(name)),
    };
  };
  return {
    log: view((log) => log),
    turn(to) {
      current = to;
    },
  };
}

/** The destination of the agent's own log. */
interface LogSink {
  /** Writes one entry with its newline, synchronously. Never throws. */
  write(entry: string): void;
  /** Closes the file; stdout and stderr belong to the process and stay open. */
  close(): void;
}

/** How long an entry waits for a full pipe, whose reader is slow. */
const waitMs = 100;
const pauseMs = 5;

const pausing = new Int32Array(new SharedArrayBuffer(4));
const pause = () => void Atomics.wait(pausing, 0, 0, pauseMs);

// Opening a pipe that nobody reads would otherwise never return.
const appending = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/**
 * Opens a file to append to, or a descriptor. An entry that cannot be written (a full disk, a terminal that was closed, a pipe
 * that nobody reads) is lost and reported; it is never queued and never stops the agent. Throws when the file cannot be opened.
 */
export function openLogSink(to: string | number, onLost: () => void): LogSink {
  const descriptor = typeof to === 'string' ? openSync(to, appending) : to;
  let isOpen = true;
  /** Whether only a part of an entry was written. Its line is ended before the next entry. */
  let isTorn = false;
  /** After a loss, nothing waits until the reader reads entries again. */
  let isStuck = false;

  const writeAll = (bytes: Buffer) => {
    const untilMs = performance.now() + (isStuck ? 0 : waitMs);
    for (let at = 0; at < bytes.length; ) {
      try {
        at += writeSync(descriptor, bytes, at);
        isTorn = at < bytes.length;
      } catch (thrown) {
        const isFull = systemCode(thrown) === 'EAGAIN';
        if (!isFull || performance.now() >= untilMs) throw thrown;
        pause();
      }
    }
  };

  return {
    write(entry) {
      if (!isOpen) return;
      try {
        writeAll(Buffer.from(isTorn ? `\n${entry}` : entry));
        isStuck = false;
      } catch {
        isStuck = true;
        onLost();
      }
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      if (typeof to === 'string') closeSync(descriptor);
    },
  };
}
