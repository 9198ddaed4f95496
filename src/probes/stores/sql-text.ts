// Quotes texts for statements. This is separate from the polls of each kind of store, because recovery and the printed grants
// quote texts, too, and load no polls.

/** A text as a literal in a statement of PostgreSQL or CQL. */
export const sqlText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/**
 * A text as a literal in a statement of MySQL and MariaDB, in which a backslash begins an escape, as in PostgreSQL after an E.
 */
export const escapedText = (text: string): string => sqlText(text.replaceAll('\\', '\\\\'));
