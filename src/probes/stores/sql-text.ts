// Apart from the polls of each kind of store: recovery and the printed grants quote texts, too, and load none of those.

/** A text in a statement of PostgreSQL, and of CQL. */
export const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A text in a statement of MySQL and MariaDB, which take a backslash for an escape, as PostgreSQL does behind an E. */
export const escapedText = (text: string): string => sqlText(text.replaceAll('\\', '\\\\'));
