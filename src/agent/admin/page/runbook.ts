import { type Child, h } from './dom.ts';

/** Text with `code`, **strong** and links. A link to another runbook opens it; any other link becomes text with its address. */
function inline(text: string): Child[] {
  const parts: Child[] = [];
  let rest = text;
  const found = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/;
  for (let match = found.exec(rest); match; match = found.exec(rest)) {
    const [all, code, strong, label, address] = match;
    parts.push(rest.slice(0, match.index));
    if (code !== undefined) parts.push(h('code', {}, code));
    else if (strong !== undefined) parts.push(h('strong', {}, strong));
    else parts.push(linkTo(label!, address!));
    rest = rest.slice(match.index + all.length);
  }
  return [...parts, rest];
}

function linkTo(label: string, address: string): Child {
  const name = /^(?:\.\.\/|\.\/)?((?:recovery\/)?[\w-]+)\.md(?:#.*)?$/.exec(address)?.[1];
  if (name)
    return h('button', { type: 'button', class: 'plain', click: () => void openRunbook(name) }, label);
  return /^https?:\/\//.test(address) ? h('a', { href: address, rel: 'noreferrer' }, label) : label;
}

/**
 * The blocks of a runbook: headings, paragraphs, lists, tables and code. This covers the shipped runbooks, not all of Markdown.
 */
function blocks(lines: readonly string[]): Child[] {
  const shown: Child[] = [];
  let at = 0;
  const take = (keep: (line: string) => boolean): string[] => {
    const from = at;
    while (at < lines.length && keep(lines[at]!)) at++;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at]!;
    const heading = /^(#{1,4}) (.*)$/.exec(line);
    const item = /^(\d+\.|[-*]) +/.exec(line);
    if (line.trim() === '') at++;
    else if (heading) {
      // The title of the dialog is the title of the document.
      if (heading[1]!.length > 1) shown.push(h(`h${heading[1]!.length + 1}`, {}, inline(heading[2]!)));
      at++;
    } else if (line.startsWith('```')) {
      at++;
      const code = take((one) => !one.startsWith('```'));
      at++;
      shown.push(h('pre', { tabindex: 0 }, h('code', {}, code.join('\n'))));
    } else if (item) {
      const isOrdered = /\d/.test(item[1]!);
      const items: Child[] = [];
      while (at < lines.length && /^(\d+\.|[-*]) +/.test(lines[at]!)) {
        const width = /^(\d+\.|[-*]) +/.exec(lines[at]!)![0].length;
        const first = lines[at]!.slice(width);
        at++;
        const more = take((one) => one.trim() === '' || /^ {2,}/.test(one));
        items.push(
          h('li', {}, blocks([first, ...more.map((one) => one.slice(Math.min(width, one.search(/\S|$/))))])),
        );
      }
      shown.push(h(isOrdered ? 'ol' : 'ul', {}, items));
    } else if (line.startsWith('|')) {
      const rows = take((one) => one.startsWith('|')).map((row) =>
        row
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      );
      const body = rows.filter((row, i) => i > 0 && !row.every((cell) => /^:?-+:?$/.test(cell)));
      shown.push(
        h(
          'table',
          {},
          h(
            'tbody',
            {},
            body.map((row) =>
              h(
                'tr',
                {},
                row.map((cell) => h('td', {}, inline(cell))),
              ),
            ),
          ),
        ),
      );
    } else {
      at++;
      const more = take((one) => one.trim() !== '' && !/^(#|```|\||\d+\. |[-*] )/.test(one));
      shown.push(h('p', {}, inline([line, ...more].join(' '))));
    }
  }
  return shown;
}

const dialog = () => document.querySelector<HTMLDialogElement>('#runbook')!;

/** The texts of runbooks that were loaded. */
const loaded = new Map<string, string>();

/** Loads the text of a runbook and keeps it. Without an answer the text is undefined, and `fault` says why. */
export async function loadRunbook(name: string): Promise<{ text?: string; fault?: string }> {
  const known = loaded.get(name);
  if (known !== undefined) return { text: known };
  try {
    const answer = await fetch(`runbooks/${name}.md`);
    if (!answer.ok) return { fault: `HTTP ${answer.status}` };
    const text = await answer.text();
    loaded.set(name, text);
    return { text };
  } catch (thrown) {
    return { fault: thrown instanceof Error ? thrown.message : 'unknown' };
  }
}

/** Shows a runbook in the dialog. The focus is in the text, so that keys scroll it and a screen reader begins there. */
export async function openRunbook(name: string): Promise<void> {
  const place = dialog();
  const title = h('h2', { id: 'runbook-title' }, name.replace('recovery/', 'Recovery: '));
  const close = h(
    'button',
    { type: 'button', class: 'plain close', 'aria-label': 'Close', click: () => place.close() },
    '✕',
  );
  const body = h(
    'div',
    { class: 'text', tabindex: 0, role: 'region', 'aria-label': 'Text of the runbook' },
    h('p', {}, 'Loading…'),
  );
  place.replaceChildren(h('div', { class: 'bar' }, title, close), body);
  if (!place.open) place.showModal();
  body.focus();
  const { text, fault } = await loadRunbook(name);
  const missing = `The runbook cannot be loaded (${fault}). It is shipped with the agent as runbooks/${name}.md.`;
  const shown = text === undefined ? [h('p', {}, missing)] : blocks(text.split('\n'));
  body.replaceChildren(...h('div', {}, shown).childNodes);
}
