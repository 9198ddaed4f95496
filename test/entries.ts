/** The JSON objects among the lines of a text, such as the output of an agent or a journal. */
export const entriesIn = <T = Record<string, unknown>>(text: string): T[] =>
  text.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as T] : []));

/** The addresses on which an agent says that it listens, by the names of the listeners; the last one of each name. */
export function listenersIn(log: string): Map<string, string> {
  const told = entriesIn<{ msg: string; listener: string; address: string }>(log);
  return new Map(
    told.filter(({ msg }) => msg === 'listening').map(({ listener, address }) => [listener, address]),
  );
}
