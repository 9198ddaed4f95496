/** Matches an error about what is not part of a dump of one database, but of the real server. */
const missing = /(?:role|tablespace) ".*" does not exist/;
/** Matches statements that make room for a dump, and fail on an empty server that has its database already. */
const makesRoom = /^(?:DROP|CREATE DATABASE|ALTER DATABASE|ALTER TABLE .* DROP|SET default_tablespace)\b/i;

interface ErrorReader {
  /** Takes a part of the standard error of psql. */
  take(chunk: Buffer): void;
  /** The first error that means that something was not restored. */
  end(): string | undefined;
}

/** Reads the errors of `psql --echo-errors`, which prints after each error the statement that failed. */
export function createErrorReader(): ErrorReader {
  let first: string | undefined;
  let last: string | undefined;
  let rest = '';
  const settle = (statement = '') => {
    // One error is enough to know, and a dump of another kind gives millions.
    if (last !== undefined && !missing.test(last) && !makesRoom.test(statement)) first ??= last;
    last = undefined;
  };
  return {
    take(chunk) {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        const [, statement] = /^STATEMENT: +(.*)/.exec(line) ?? [];
        if (statement !== undefined) settle(statement);
        else if (/ERROR:|FATAL:/.test(line)) {
          settle();
          last = line;
        }
      }
    },
    end() {
      settle();
      return first;
    },
  };
}
