type Child = Node | string | number | false | undefined | readonly Child[];
type Attributes = Readonly<Record<string, string | number | boolean | undefined | ((event: Event) => void)>>;

const svgNames = new Set(['svg', 'rect', 'path', 'line', 'circle', 'title', 'g']);

function append(parent: Element, child: Child): void {
  if (child === false || child === undefined) return;
  if (Array.isArray(child)) for (const one of child) append(parent, one);
  else parent.append(child instanceof Node ? child : String(child));
}

/**
 * An element. Text becomes text nodes, never markup. `key` identifies the element when its parent is drawn again; `keep` leaves
 * its children alone; functions listen to the event of their name.
 */
export function h(name: string, attributes: Attributes = {}, ...children: readonly Child[]): HTMLElement {
  const element = svgNames.has(name)
    ? document.createElementNS('http://www.w3.org/2000/svg', name)
    : document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') listeners(element).set(attribute, value);
    else if (attribute === 'key' || attribute === 'keep')
      element.setAttribute(`data-${attribute}`, String(value));
    else element.setAttribute(attribute, value === true ? '' : String(value));
  }
  for (const child of children) append(element, child);
  return element as HTMLElement;
}

/** Listeners are looked up when an event arrives, so that drawing again never adds a second one. */
const listening = new WeakMap<Element, Map<string, (event: Event) => void>>();
function listeners(element: Element): Map<string, (event: Event) => void> {
  const known = listening.get(element) ?? new Map<string, (event: Event) => void>();
  listening.set(element, known);
  return known;
}
for (const type of ['click', 'change'])
  document.addEventListener(type, (event) => {
    for (let at = event.target as Element | null; at; at = at.parentElement) {
      const listener = listening.get(at)?.get(type);
      if (listener) return listener(event);
    }
  });

const keyOf = (node: Node): string | undefined =>
  node instanceof Element ? (node.getAttribute('data-key') ?? undefined) : undefined;

const isSame = (one: Node, other: Node): boolean =>
  one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

/** Attributes that the reader changes, such as open details. */
const own = new Set(['open', 'data-width']);

function morphElement(old: Element, next: Element): void {
  for (const { name } of [...old.attributes])
    if (!next.hasAttribute(name) && !own.has(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes)
    if (!own.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  const known = listening.get(next);
  if (known) listening.set(old, known);
  if (!next.hasAttribute('data-keep')) morphChildren(old, next);
}

function morphChildren(old: Element, next: Element): void {
  const keyed = new Map([...old.childNodes].flatMap((node) => (keyOf(node) ? [[keyOf(node)!, node]] : [])));
  let at: ChildNode | null = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const key = keyOf(wanted);
    const found = key === undefined ? at : (keyed.get(key) ?? null);
    if (!found || !isSame(found, wanted)) {
      old.insertBefore(wanted, at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else old.insertBefore(found, at);
    if (found instanceof Element) morphElement(found, wanted as Element);
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
  }
  while (at) {
    const after: ChildNode | null = at.nextSibling;
    at.remove();
    at = after;
  }
}

/** Replaces the children of `element` by `children`. Equal elements stay, with their focus, selection and open details. */
export function draw(element: Element, ...children: readonly Child[]): void {
  const next = element.cloneNode(false) as Element;
  for (const child of children) append(next, child);
  morphChildren(element, next);
}

/** A table that turns into cards if there is too little room; `head` names the columns. */
export function table(
  caption: string,
  head: readonly string[],
  rows: readonly { key?: string; cells: readonly Child[] }[],
): HTMLElement {
  const cell = (child: Child, column: number) =>
    h('td', { role: 'cell', 'data-label': head[column] }, h('div', { class: 'cell' }, child));
  return h(
    'table',
    { role: 'table' },
    h('caption', { class: 'hidden' }, caption),
    h(
      'thead',
      { role: 'rowgroup' },
      h(
        'tr',
        { role: 'row' },
        head.map((name) => h('th', { role: 'columnheader', scope: 'col' }, name)),
      ),
    ),
    h(
      'tbody',
      { role: 'rowgroup' },
      rows.map(({ key, cells }) => h('tr', { role: 'row', key }, cells.map(cell))),
    ),
  );
}

export type { Child };
