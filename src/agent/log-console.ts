import type { DestinationStream } from 'pino';

/**
 * The spec's `console` encoding, tab-separated as the service's own: ts, level, [logger,] msg, fields as JSON.
 * It re-reads pino's JSON line, which costs nothing that matters at an agent's rate of logging.
 */
export function consoleStream(sink: DestinationStream, levelKey: string): DestinationStream {
  return {
    write(line: string) {
      const { ts, [levelKey]: level, logger, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
      const rest = Object.keys(fields).length > 0 ? [JSON.stringify(fields)] : [];
      const columns = [ts, level, ...(logger === undefined ? [] : [logger]), oneLine(msg), ...rest];
      sink.write(`${columns.join('\t')}\n`);
    },
  };
}

/** A message with line breaks would read as an entry and its stack trace. */
function oneLine(msg: unknown): string {
  return String(msg ?? '')
    .replace(/\s*[\r\n]+\s*/g, ' ')
    .replaceAll('\t', ' ');
}
